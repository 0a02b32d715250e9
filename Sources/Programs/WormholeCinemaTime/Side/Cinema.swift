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

  /// What a screen shows, instead of a line on standard error.
  enum Event: Sendable {
    case message(Message)
    /// What stands between this side and the other one; nil if nothing does.
    case obstacle(String?)
  }

  private static let screen = Mutex<(@Sendable (Event) -> Void)?>(nil)
  private static let obstacle = Mutex<String?>(nil)

  /// Gives all events from now on to a screen.
  static func setScreen(_ show: @escaping @Sendable (Event) -> Void) {
    screen.withLock { $0 = show }
  }

  /// Logs an event, once.
  ///
  /// - Parameters:
  ///   - line: Without a screen, a line for standard error; nil if the log already has it.
  ///   - message: At a screen, a sentence; nil if the screen shows it, or no user needs it.
  static func log(_ line: String?, _ message: Message? = nil) {
    if let show = screen.withLock(\.self) {
      if let message { show(.message(message)) }
      return
    }
    guard let line else { return }
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
    guard let show = screen.withLock(\.self) else { return log(now) }
    show(.obstacle(now?.capitalizedFirst))
  }
}

extension Cinema {
  /// Ends the program with a sentence.
  static func fail(_ reason: String, _ status: Int32) -> Never {
    FileHandle.standardError.write(Data("cinematime: \(reason)\n".utf8))
    exit(status)
  }
}

/// A sentence about an event, for people at a screen.
enum Message: Equatable, Sendable {
  case success(String)
  case failure(String)
  case notice(String)
}
