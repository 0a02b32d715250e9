import Dispatch
import Synchronization
import Wormhole
import WormholePropertyLists
import WormholeSystem
import WormholeWorkshop

/// The check that a process which is stopped for longer than its lease is absent on etcd, and
/// present again when it continues.
func checkAbsence(of worker: WorkerProcess?, _ container: SharedContainer) throws -> Check {
  let promise = "a process that is stopped for too long is absent, and returns"
  guard let worker else { return Check(promise: promise, extent: "no process", evidence: []) }
  let presence = container.presence(PresenceWatch.name)
  func becomes(present: Bool) throws -> Bool {
    // The lifetime of its lease, twice: etcd counts it from the last sign of life, and its looks for
    // leases that have ended are not exact. The rest is for a busy machine.
    try poll(until: .now + Nemesis.lifetime * 2 + .seconds(6), every: .milliseconds(50)) {
      try presence.members().contains { $0.processID == worker.processID } == present
    }
  }
  var evidence: [String] = []
  try worker.process.send(.stop)
  if try !becomes(present: false) { evidence.append("it is still present") }
  try worker.process.send(.continue)
  if try !becomes(present: true) { evidence.append("it does not return") }
  return Check(promise: promise, extent: "worker \(worker.life)", evidence: evidence)
}

/// The check that a restored snapshot is noticed, after which revisions are repeated.
///
/// The workers are at rest, so they lose nothing by it. Their knowledge of the history is wrong
/// from then on: the final changes show whether they observe later changes, and are present again.
func checkRestore(_ nemesis: Nemesis, _ container: SharedContainer) throws -> Check {
  // The next history remains shorter than this makes the former one.
  let lost: UInt64 = 200
  let value = container.value("torture/restored")
  let seen = Mutex<UInt64?>(nil)
  let observation = try value.observe(startsWithCurrent: true, on: .global()) { snapshot in
    // No member answers while they are restarted; the observer is called again when one does.
    guard let number = try? snapshot.propertyList()?.uint64Value else { return }
    seen.withLock { $0 = number }
  }
  defer { observation.cancel() }
  var evidence: [String] = []
  func expect(_ number: UInt64, _ when: String) throws {
    guard poll(until: .now + .seconds(15), { seen.withLock { $0 } == number }) else {
      let last = seen.withLock { $0 }.map(String.init) ?? "nothing"
      return evidence.append("its observer has \(last) \(when), not \(number)")
    }
    let now = try value.read()?.uint64Value
    if now != number { evidence.append("\(now.map(String.init) ?? "nothing") is there \(when)") }
  }
  try value.replace(with: 0)
  try nemesis.save()
  for number in 1...lost { try value.replace(with: PropertyListValue(number)) }
  try expect(lost, "before")
  try nemesis.restore()
  try expect(0, "after")
  try value.replace(with: PropertyListValue(lost + 1))
  try expect(lost + 1, "in the end")
  return Check(
    promise: "a restored snapshot takes back what came after it, and nothing else",
    extent: "\(lost) changes", evidence: evidence)
}
