import Dispatch
import Wormhole
import WormholeSystem

extension Presence {
  /// What a command that is to run alone may take over: in a directory a role whose holder is
  /// stopped with all that its command has started, which is then killed. On etcd a command's
  /// processes are not known, so a session has to end.
  var overtakingOfCommands: Overtaking { container.isLocal ? .suspended : .nobody }
}

/// Watches the exclusive role of a process whose command may run only while it has the role.
///
/// The command gets SIGTERM when the role is lost, or when etcd has not answered for eight tenths
/// of the session's lifetime. It is killed at the registration's deadline, a tenth later, so that
/// it has ended before a successor's command can begin. In a directory the role is then lost
/// permanently, and the command has a fixed grace.
final class RoleWatch {
  let registration: PresenceRegistration
  private let news: OneResult<WormholeError>
  /// Why the command got SIGTERM.
  private var cause: WormholeError?

  /// How long a command may take to end if its role does not depend on a clock.
  private static let grace: Duration = .seconds(1)

  init(_ registration: PresenceRegistration) throws(Errno) {
    self.registration = registration
    news = try OneResult()
    registration.onLoss { [news] in news.put($0) }
  }

  /// Readable once the role is lost.
  var descriptor: Int32 { news.descriptor }

  /// Why the command must not run; once there is a reason, it stays.
  private func loss() -> WormholeError? {
    if news.look() == nil, let loss = registration.loss { news.put(loss) }
    return news.look()
  }

  /// Also asks etcd, in the background: a process that was stopped may have been replaced although
  /// its session lasts.
  func checkAfterStop() {
    guard registration.deadline != nil else { return }
    Blocking.queue().async { [registration, news] in
      do {
        try registration.confirm()
      } catch let error as WormholeError where error.code == .leaseLost {
        news.put(error)
      } catch {
        // etcd does not answer: the deadline will come.
        return
      }
    }
  }

  /// When a command that got SIGTERM is killed; later if etcd has answered meanwhile.
  func deadline(askedAt asked: ContinuousClock.Instant) -> ContinuousClock.Instant {
    registration.deadline ?? asked + Self.grace
  }

  /// Whether the role is lost, so that the command gets SIGTERM.
  func isLost() -> Bool {
    cause = loss()
    return cause != nil
  }

  func checkBeforeStart() throws(LostBeforeStart) {
    if let loss = loss() { throw .init(error: error(loss, "the command was not started")) }
  }

  /// Fails if the command got SIGTERM, because then its status is not its own.
  func check() throws(CommandError) {
    if let cause { throw error(cause, "the command was asked to end") }
    guard let loss = loss() else { return }
    // In a directory a successor waits for the end of what works under the role.
    throw error(
      loss,
      registration.deadline == nil
        ? "what was left of the command was killed" : "the command has run beside its successor")
  }

  private func error(_ loss: WormholeError, _ consequence: String) -> CommandError {
    CommandError.no(
      "stay \(registration.presence.name.quoted)", because: "\(loss.reason); \(consequence)")
  }
}

/// A role, or the access to a file, was lost before a command was started in it.
struct LostBeforeStart: Error {
  let error: any Error

  /// Does something, and again if what it needs was lost before anything was begun.
  static func repeating<Result>(_ body: () throws -> Result) throws -> Result {
    while true {
      do {
        return try body()
      } catch is LostBeforeStart {
        continue
      }
    }
  }
}
