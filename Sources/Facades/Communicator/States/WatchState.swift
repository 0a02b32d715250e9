public import Foundation
internal import WatchConnectivity

/// The state of the watch, as the phone knows it.
///
/// Observers on the phone are called after each activation, which also concludes a change of watch,
/// and whenever the session reports a change.
///
/// ```swift
/// if case .paired(.installed(.enabled(let left), _)) = Communicator.shared.currentWatchState {
///   print("the complication can be updated \(left) times today")
/// }
/// ```
public enum WatchState: Sendable, Hashable {
  /// A watch is paired and the active one.
  case paired(AppState)
  /// No watch is paired.
  case notPaired

  /// Whether the app is on the active watch.
  ///
  /// ```swift
  /// if Communicator.shared.currentWatchState.appState == .notInstalled { print("no app there") }
  /// ```
  public enum AppState: Sendable, Hashable {
    /// The app is installed. Includes its complication's state, and a directory on the phone for
    /// data about this watch only, which is nil while the session is not activated.
    case installed(ComplicationState, WatchSpecificLocalURL?)
    /// The app is not installed.
    case notInstalled

    /// Whether the app's complication is on display.
    ///
    /// ```swift
    /// if case .enabled(let left) = Communicator.shared.currentWatchState.complicationState { print(left) }
    /// ```
    public enum ComplicationState: Sendable, Hashable {
      /// The complication is on display, with the number of `ComplicationInfo` transfers that still
      /// wake the watch today.
      case enabled(numberOfUpdatesAvailableToday: Int)
      /// The complication is not on display.
      case notEnabled
    }

    /// A directory of one watch, which is deleted after the watch was unpaired or the app removed.
    public typealias WatchSpecificLocalURL = URL
  }
}

extension WatchState {
  /// Whether the app is on the active watch; `.notInstalled` if there is none.
  public var appState: AppState {
    switch self {
    case .paired(let state): state
    case .notPaired: .notInstalled
    }
  }

  /// Whether the complication is on display; `.notEnabled` if there is no watch or no app.
  public var complicationState: AppState.ComplicationState {
    switch appState {
    case .installed(let state, _): state
    case .notInstalled: .notEnabled
    }
  }

  /// The number of `ComplicationInfo` transfers that still wake the watch today.
  public var numberOfComplicationUpdatesAvailableToday: Int {
    switch complicationState {
    case .enabled(let count): count
    case .notEnabled: 0
    }
  }
}

extension WatchState {
  init(session: WCSession) {
    self = session.role == .phone && session.isPaired ? .paired(AppState(session)) : .notPaired
  }
}

extension WatchState.AppState {
  fileprivate init(_ session: WCSession) {
    guard session.isWatchAppInstalled else {
      self = .notInstalled
      return
    }
    let complication: ComplicationState =
      session.isComplicationEnabled
      ? .enabled(numberOfUpdatesAvailableToday: session.remainingComplicationUserInfoTransfers)
      : .notEnabled
    self = .installed(complication, session.watchDirectoryURL)
  }
}

extension WatchState: Observable {
  /// The observers of the watch's state.
  public static let observations = Observations<Self>()
}
