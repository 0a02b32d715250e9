import WormholeDefaultsClients

/// The settings of the client of UserDefaults: `show`, `goal N`, `name NAME`, `imperial`, `reset`. Answers
/// with their summary.
struct Settings {
  // The client is of Swift 5 and not Sendable; this program's commands come one after the other.
  nonisolated(unsafe) static let shared = Settings()
  private let settings = StepSettings()

  func perform(_ word: String, _ argument: String?) -> String {
    switch word {
    case "goal": settings.dailyGoal = argument.flatMap(Int.init) ?? 0
    case "name": settings.name = argument ?? ""
    case "imperial": settings.usesMetric = false
    case "reset": settings.reset()
    default: break
    }
    return settings.summary
  }
}
