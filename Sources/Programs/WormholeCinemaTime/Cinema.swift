import Foundation
import Synchronization
import WatchConnectivity
import Wormhole

/// The identity of this process: one side of the cinema. Set once, before anything else is used.
enum Cinema {
  private typealias Side = (
    role: WCSession.Role, container: SharedContainer, options: LaunchOptions
  )

  private static let side = Mutex<Side?>(nil)

  static func begin(_ role: WCSession.Role, _ container: SharedContainer, _ options: LaunchOptions)
  {
    side.withLock { $0 = (role, container, options) }
    WCSession.configure(role: role, container: container, watchName: options.watchName)
  }

  private static var current: Side {
    guard let side = side.withLock({ $0 }) else {
      preconditionFailure("the program begins by saying which side it is")
    }
    return side
  }

  static var role: WCSession.Role { current.role }
  static var isPhone: Bool { role == .phone }
  static var container: SharedContainer { current.container }
  static var watchName: String { current.options.watchName }
  static var options: LaunchOptions { current.options }

  /// The time of the day, which decides which show is next.
  static var time: TimeOfDay {
    if let fixed = current.options.time { return fixed }
    let now = Calendar.current.dateComponents([.hour, .minute], from: Date())
    return TimeOfDay(hour: now.hour ?? 0, minute: now.minute ?? 0)
  }

  private static let listener = Mutex<(@Sendable (Event.Words) -> Void)?>(nil)
  private static let last = Mutex("")

  /// Shows an event on the screen; without a screen, writes a line about it to standard error.
  ///
  /// - Parameter isRepeated: Whether a line is written again if it is the same as the last one.
  static func log(_ event: Event, isRepeated: Bool = true) {
    let isKnown = last.withLock { last in
      // An obstacle that returns is said again.
      if case .wayIsFree = event.words { last = "" }
      guard let line = event.line else { return false }
      defer { last = line }
      return last == line
    }
    if isKnown, !isRepeated { return }
    if let listener = listener.withLock({ $0 }) { return listener(event.words) }
    guard let line = event.line else { return }
    FileHandle.standardError.write(Data("\(role.rawValue): \(line)\n".utf8))
  }

  static func sendEvents(to handler: (@Sendable (Event.Words) -> Void)?) {
    listener.withLock { $0 = handler }
  }
}
