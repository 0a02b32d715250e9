import Glibc
import Synchronization
import Wormhole
import WormholePropertyLists
import WormholeSystem
import WormholeToolkit

/// The verbs of a participant about presence.
///
/// ```
/// enter NAME [TEXT]       enters, and stays until the next "leave"; answers its id
/// alone NAME [SECONDS]    the same exclusively, within SECONDS
/// leave NAME              leaves
/// confirm NAME            confirms
/// while NAME CHANGE       makes a change under the role that "alone" has entered: update or together counts
///                         in values; send puts an entry into the queue "jobs", store does it with a receipt
/// lost NAME               waits for the loss of what "alone" has entered; answers its code
/// members NAME            "PID:STATE…" of the present processes
/// mailbox-make NAME       creates a mailbox that ends with the process; answers "address ADDRESS"
/// mailbox-descriptors N   it may have N open descriptors from now on
/// wait MILLISECONDS       waits as a task does
/// holder PROCESS          answers how a process is named that is in the way
/// mailbox-heard all       answers the numbers that its mailboxes have delivered, in order
/// ```
enum PresenceVerbs {
  static let all: Set<String> = [
    "enter", "alone", "leave", "confirm", "lost", "while", "members", "mailbox-make",
    "mailbox-descriptors", "wait", "mailbox-heard", "holder",
  ]
  private static let mailboxes = Mutex<[any Mailbox]>([])
  private static let heard = Mutex<[Int]>([])
  private static let losses = Mutex<[String: Awaited<String>]>([:])
  private static let registrations = Mutex<[String: PresenceRegistration]>([:])

  static func perform(_ verb: String, _ presence: Presence, _ argument: String?) throws -> String {
    let name = presence.name
    switch verb {
    case "enter":
      return keep(try presence.enter(content: argument.map { .string($0) }), name)
    case "alone":
      let wait = Duration.seconds(argument.flatMap { Int($0) } ?? 0)
      let role = try presence.enterExclusively(until: .now + wait)
      let loss = Awaited<String>()
      losses.withLock { $0[name] = loss }
      #if DEBUG
        // It has entered by now: a stop before one of these calls is another case.
        Faults.$plan.withValue(nil) { role.onLoss { loss.settle("\($0.code)") } }
      #else
        role.onLoss { loss.settle("\($0.code)") }
      #endif
      return keep(role, name)
    case "lost": return losses.withLock { $0[name] }?.wait() ?? "nothing to lose"
    case "leave": registrations.withLock { $0.removeValue(forKey: name) }?.close()
    case "confirm": try registrations.withLock { $0[name] }?.confirm()
    case "while":
      guard let role = registrations.withLock({ $0[name] }) else { return "error no role" }
      try change(argument ?? "", in: presence.container, role.fence)
    case "mailbox-make":
      let mailbox = try presence.container.makeMailbox { value in
        heard.withLock { $0.append(value.intValue ?? -1) }
      }
      mailboxes.withLock { $0.append(mailbox) }
      return "address \(mailbox.address)"
    case "mailbox-descriptors":
      var limit = rlimit()
      getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
      limit.rlim_cur = rlim_t(name) ?? 0
      guard setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else {
        return "error \(name)"
      }
    case "wait":
      let (latch, woken) = (WakeLatch(), Awaited<String>())
      _ = latch.wake(until: .now + .milliseconds(Int(name) ?? 0)) { woken.settle("done") }
      return woken.wait()
    case "holder": return "\(LeaseHolder(visible: Int32(name) ?? 0, held: nil))"
    case "mailbox-heard": return heard.withLock { "\($0)" }
    default:
      return try presence.members().map { "\($0.processID):\($0.state)" }.joined(separator: " ")
    }
    return "done"
  }

  private static func change(
    _ change: String, in container: SharedContainer, _ fence: Fence
  ) throws {
    switch change {
    case "update":
      try container.value("a").update(while: fence) { $0 = .integer(($0?.int64Value ?? 0) + 1) }
    case "together":
      try container.update(["a", "b"], while: fence) { values in
        for name in ["a", "b"] {
          values[name] = .integer((values[name]?.int64Value ?? 0) + 1)
        }
      }
    default:
      try container.queue("jobs").sender("late").enqueue(
        1, keepsReceipt: change == "store", while: fence)
    }
  }

  private static func keep(_ registration: PresenceRegistration, _ name: String) -> String {
    registrations.withLock { $0[name] = registration }
    return registration.id
  }
}
