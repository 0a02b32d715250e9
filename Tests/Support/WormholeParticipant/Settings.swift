import WormholeDefaultsClients

/// The settings of the client of UserDefaults: `show`, `goal N`, `name NAME`, `imperial`, `reset`. Answers
/// with their summary. `accounts` answers with that of `Accounts`; `observe`, `volume N`, `title TITLE`,
/// `stop` and `heard`, with what an observer has heard; `changedBack` with what it has heard last;
/// `object WHAT` with what helpers for any object have done.
final class Settings {
  // The client is of Swift 5 and not Sendable; this program's commands come one after the other.
  nonisolated(unsafe) static let shared = Settings()
  private let settings = StepSettings()
  private lazy var observer = VolumeObserver()

  func perform(_ word: String, _ argument: String?) -> String {
    switch word {
    case "accounts": return Accounts().summary
    case "observe", "heard": return observer.heard
    case "volume":
      observer.set(argument.flatMap(Int.init) ?? 0)
      return observer.heard
    case "title":
      observer.set(argument)
      return observer.heard
    case "object": return AnyObjectHelpers.used(on: argument ?? "") ?? "nil"
    case "changedBack": return "\(VolumeObserver.heardLast())"
    case "stop":
      observer.stop()
      return observer.heard
    case "goal": settings.dailyGoal = argument.flatMap(Int.init) ?? 0
    case "name": settings.name = argument ?? ""
    case "imperial": settings.usesMetric = false
    case "reset": settings.reset()
    default: break
    }
    return settings.summary
  }
}
