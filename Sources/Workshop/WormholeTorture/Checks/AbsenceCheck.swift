import Wormhole
import WormholeSystem

/// The check that a process which is stopped for longer than its lease is absent on etcd, and
/// present again when it continues.
struct AbsenceCheck {
  private static let promise =
    "a process that is stopped for too long is absent, and returns"
  /// The lifetime of its lease, twice: etcd counts it from the last sign of life, and its looks for
  /// leases that have ended are not exact. The rest is for a busy machine.
  private static let patience = Nemesis.lifetime * 2 + .seconds(6)

  static func check(_ worker: WorkerProcess?, _ container: SharedContainer) throws -> Check {
    guard let worker else { return Check(promise: promise, extent: "no process", evidence: []) }
    let presence = container.presence(PresenceWatch.name)
    func isPresent() throws -> Bool {
      try presence.members().contains { $0.processID == worker.processID }
    }
    var evidence: [String] = []
    try worker.process.send(.stop)
    if try !becomes(false, isPresent) { evidence.append("it is still present") }
    try worker.process.send(.continue)
    if try !becomes(true, isPresent) { evidence.append("it does not return") }
    return Check(promise: promise, extent: "worker \(worker.life)", evidence: evidence)
  }

  private static func becomes(_ state: Bool, _ body: () throws -> Bool) throws -> Bool {
    let deadline = ContinuousClock.now + patience
    while try body() != state {
      guard ContinuousClock.now < deadline else { return false }
      pauseThread(.milliseconds(50))
    }
    return true
  }
}
