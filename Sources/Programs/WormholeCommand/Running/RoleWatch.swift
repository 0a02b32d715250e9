import Dispatch
import Synchronization
import Wormhole
import WormholeSystem

/// The watch over an exclusive role, of a process whose command may run only as long as it has it.
///
/// The command gets SIGTERM when the role is lost, or when etcd has not answered for eight
/// tenths of the session's lifetime; and killed at the registration's deadline, a tenth later, so that
/// it has ended before a successor's command can begin. A command of a directory, whose role is lost
/// for good then, has a fixed grace.
final class RoleWatch {
  let registration: PresenceRegistration
  private let news: News
  /// Why the command got SIGTERM.
  private var cause: AppGroupError?

  /// How long a command may take to end if its role does not depend on a clock.
  private static let grace: Duration = .seconds(1)

  private final class News: Sendable {
    let counter: SharedDescriptor
    let loss = Mutex<AppGroupError?>(nil)

    init() throws(Errno) { counter = SharedDescriptor(try FileDescriptor.wakeUpCounter()) }

    func put(_ error: AppGroupError) {
      loss.withLock { $0 = $0 ?? error }
      // Only a counter at its maximum cannot be raised, and that one is readable already.
      try? counter.descriptor.raiseCounter()
    }
  }

  init(_ registration: PresenceRegistration) throws(Errno) {
    self.registration = registration
    news = try News()
    registration.onLoss { [news] in news.put($0) }
  }

  /// Readable once the role is lost.
  var descriptor: Int32 { news.counter.descriptor.rawValue }

  /// Why the command must not run; stays once there is a reason.
  fileprivate func loss() -> AppGroupError? {
    if let loss = news.loss.withLock({ $0 }) { return loss }
    if let loss = registration.loss { news.put(loss) }
    return news.loss.withLock { $0 }
  }

  /// Asks etcd, too, in the background: a process that was stopped may have been overtaken although its
  /// session lasts.
  func checkAfterStop() {
    guard registration.deadline != nil else { return }
    DispatchQueue(label: "wormhole.call").async { [registration, news] in
      do {
        try registration.confirm()
      } catch let error as AppGroupError where error.code == .leaseLost {
        news.put(error)
      } catch {
        // etcd does not answer: then the deadline comes.
        return
      }
    }
  }

  /// When a command that got SIGTERM is killed; later if etcd has answered meanwhile.
  func deadline(toldAt told: ContinuousClock.Instant) -> ContinuousClock.Instant {
    registration.deadline ?? told + Self.grace
  }

  /// Sends the command SIGTERM, because of a loss that was seen.
  ///
  /// - Returns: Whether there is one.
  func ends(_ child: borrowing ChildProcess) throws(Errno) -> Bool {
    guard let loss = loss() else { return false }
    cause = loss
    try child.askToEnd()
    return true
  }

  /// Fails if the command got SIGTERM: its status is not its own then.
  func check() throws(CommandError) {
    guard let cause else { return }
    throw error(cause, "the command was told to end")
  }

  fileprivate func error(_ loss: AppGroupError, _ consequence: String) -> CommandError {
    CommandError(
      verb: "stay", object: registration.presence.name.quoted,
      reason: "\(loss.reason); \(consequence)", status: .no)
  }
}

extension ExternalCommand {
  /// Starts the program under a role, if this process still has it.
  func start(variables: [String], under role: RoleWatch?) throws -> ChildProcess {
    if let role, let loss = role.loss() { throw role.error(loss, "the command was not started") }
    let fence = role.map {
      CommandVariable.assignment(CommandVariable.fence, "\($0.registration.fence.number)")
    }
    return try start(variables: variables + [fence].compactMap(\.self))
  }
}
