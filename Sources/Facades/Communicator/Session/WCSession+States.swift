internal import WatchConnectivity

extension WCSession {
  var isPhone: Bool { role == .phone }
  var isWatch: Bool { role == .watch }
  var isCounterpartInstalled: Bool { isPhone ? isWatchAppInstalled : isCompanionAppInstalled }
}

extension WatchState {
  init(session: WCSession) {
    self = session.isPhone && session.isPaired ? .paired(AppState(session: session)) : .notPaired
  }
}

extension WatchState.AppState {
  init(session: WCSession) {
    self =
      session.isWatchAppInstalled
      ? .installed(ComplicationState(session: session), session.watchDirectoryURL) : .notInstalled
  }
}

extension WatchState.AppState.ComplicationState {
  init(session: WCSession) {
    self =
      session.isComplicationEnabled
      ? .enabled(numberOfUpdatesAvailableToday: session.remainingComplicationUserInfoTransfers)
      : .notEnabled
  }
}

extension PhoneState {
  init(session: WCSession) {
    self =
      session.isWatch && session.isPaired
      ? .paired(session.isCompanionAppInstalled ? .installed : .notInstalled) : .notPaired
  }
}
