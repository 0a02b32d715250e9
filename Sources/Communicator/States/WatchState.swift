public import Foundation
internal import WatchConnectivity

/// What the phone knows of its watch.
///
/// Observers are told on the phone: after each activation, which a change of watch ends with, and
/// whenever the session says that it has changed.
public enum WatchState: Sendable, Hashable {
  /// A watch is paired and the active one.
  case paired(AppState)
  /// No watch is paired.
  case notPaired

  /// Whether the app is on the active watch.
  public enum AppState: Sendable, Hashable {
    /// It is; with the state of its complication, and a directory on the phone for what concerns this
    /// watch only, nil while the session is not activated.
    case installed(ComplicationState, WatchSpecificLocalURL?)
    /// It is not.
    case notInstalled

    /// Whether the app's complication is on display.
    public enum ComplicationState: Sendable, Hashable {
      /// It is; with how many transfers of `ComplicationInfo` still wake the watch today.
      case enabled(numberOfUpdatesAvailableToday: Int)
      /// It is not.
      case notEnabled
    }

    /// A directory of one watch; it is deleted after the watch was unpaired or the app removed.
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

  /// How many transfers of `ComplicationInfo` still wake the watch today.
  public var numberOfComplicationUpdatesAvailableToday: Int {
    switch complicationState {
    case .enabled(let count): count
    case .notEnabled: 0
    }
  }
}

extension WatchState: Observable {
  /// Who observes the state of the watch.
  public static let observations = Observations<Self>()
}
