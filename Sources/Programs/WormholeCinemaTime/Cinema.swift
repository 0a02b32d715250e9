import Foundation
import Synchronization
import WatchConnectivity
import Wormhole
import WormholeTerminals

/// The identity of this process: one side of the cinema. Set once, before anything else is used.
enum Cinema {
  private static let side = Mutex<(container: SharedContainer, options: LaunchOptions)?>(nil)

  static func begin(as role: WCSession.Role, _ options: LaunchOptions) throws {
    let container = try options.openContainer()
    side.withLock { $0 = (container, options) }
    WCSession.configure(role: role, container: container, watchName: options.watchName)
  }

  private static var current: (container: SharedContainer, options: LaunchOptions) {
    guard let side = side.withLock({ $0 }) else {
      preconditionFailure("the program begins by saying which side it is")
    }
    return side
  }

  static var isPhone: Bool { options.role == .phone }
  static var container: SharedContainer { current.container }
  static var watchName: String { current.options.watchName }
  static var options: LaunchOptions { current.options }

  // MARK: Events

  /// Whether events change a screen instead of being written as lines.
  static let hasScreen = Atomic(false)
  private static let obstacle = Mutex<String?>(nil)

  /// - Returns: false without a screen.
  private static func show(_ change: @escaping @Sendable (inout ScreenState) -> Void) -> Bool {
    guard hasScreen.load(ordering: .acquiring) else { return false }
    DispatchQueue.main.async { Screen.shared.show(change) }
    return true
  }

  /// Logs an event, once.
  ///
  /// - Parameters:
  ///   - line: Without a screen, a line for standard error; nil if the log already has it.
  ///   - message: At a screen, a sentence; nil if the screen shows it, or no user needs it.
  static func log(_ line: String?, _ message: Message? = nil) {
    if let message, show({ $0.message = message }) { return }
    guard let line, !hasScreen.load(ordering: .acquiring) else { return }
    FileHandle.standardError.write(Data("\(isPhone ? "phone" : "watch"): \(line)\n".utf8))
  }

  static func log(failure sentence: String) { log(sentence, .failure(sentence.capitalizedFirst)) }

  static func log(_ error: any Error) { log(failure: "\(error)") }

  /// Reports the obstacle to the other side, and a remedy; a screen shows it until it is gone.
  static func log(obstacle now: String?) {
    let isNew = obstacle.withLock { last in
      defer { last = now }
      return last != now
    }
    guard isNew else { return }
    let sentence = now?.capitalizedFirst
    if !show({ $0.obstacle = sentence }) { log(now) }
  }
}

/// A sentence about an event, for people at a screen.
enum Message: Equatable, Sendable {
  case success(String)
  case failure(String)
  case notice(String)
}
