import AppGroup
import PropertyLists
import Synchronization

/// The verbs of a participant about presence.
///
/// ```
/// enter NAME [TEXT]       enters, and stays until the next "leave"; answers its id
/// alone NAME [SECONDS]    the same exclusively, within SECONDS
/// leave NAME              leaves
/// confirm NAME            confirms
/// members NAME            "PID:STATE…" of the present processes
/// mailbox-make NAME       creates a mailbox that ends with the process; answers "address ADDRESS"
/// ```
enum PresenceVerbs {
  static let all: Set<String> = ["enter", "alone", "leave", "confirm", "members", "mailbox-make"]
  private static let mailboxes = Mutex<[Mailbox]>([])
  private static let registrations = Mutex<[String: PresenceRegistration]>([:])

  static func perform(_ verb: String, _ presence: Presence, _ argument: String?) throws -> String {
    let name = presence.name
    switch verb {
    case "enter":
      return keep(try presence.enter(content: argument.map { .string($0) }), name)
    case "alone":
      let wait = Duration.seconds(argument.flatMap { Int($0) } ?? 0)
      return keep(try presence.enterExclusively(until: .now + wait), name)
    case "leave": registrations.withLock { $0.removeValue(forKey: name) }?.close()
    case "confirm": try registrations.withLock { $0[name] }?.confirm()
    case "mailbox-make":
      let mailbox = try Mailbox(in: presence.container) { _ in }
      mailboxes.withLock { $0.append(mailbox) }
      return "address \(mailbox.address)"
    default:
      return try presence.members().map { "\($0.processID):\($0.state)" }.joined(separator: " ")
    }
    return "done"
  }

  private static func keep(_ registration: PresenceRegistration, _ name: String) -> String {
    registrations.withLock { $0[name] = registration }
    return registration.id
  }
}
