import AppGroup
import Foundation
import Synchronization
import WatchConnectivity

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

  /// The hour of the day, which decides which show is next.
  static var hour: Int { Calendar.current.component(.hour, from: Date()) }

  private static let listener = Mutex<(@Sendable (String) -> Void)?>(nil)
  private static let last = Mutex("")

  /// Writes a line about an event to standard error, unless a screen shows it.
  ///
  /// - Parameter isRepeated: Whether a line is written again if it is the same as the last one.
  static func log(_ line: String, isRepeated: Bool = true) {
    let isKnown = last.withLock { last in
      defer { last = line }
      return last == line
    }
    if isKnown, !isRepeated { return }
    if let listener = listener.withLock({ $0 }) { return listener(line) }
    FileHandle.standardError.write(Data("\(role.rawValue): \(line)\n".utf8))
  }

  static func sendLog(to handler: (@Sendable (String) -> Void)?) {
    listener.withLock { $0 = handler }
  }
}
