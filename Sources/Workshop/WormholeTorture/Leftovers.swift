import Dispatch
import FoundationEssentials
import Synchronization
import Wormhole
import WormholeEtcd
import WormholeInspection
import WormholePropertyLists
import WormholeSystem
import WormholeToolkit
import WormholeWorkshop

/// The check that a swept container holds only expected entries.
struct Leftovers {
  let directory: RunDirectory

  func check(_ container: SharedContainer) throws -> Check {
    let sweep = try container.sweep()
    let (extent, strangers) =
      if let place = directory.etcd { try keys(EtcdLocation(place)) } else { try entries() }
    var evidence = sweep.failures.map { "the sweep: \($0)" }
    evidence += try container.report().leftovers.map { "\($0.kind): \($0.path)" }
    return Check(
      "a sweep leaves nothing behind", "\(extent), \(sweep.removed.count) leftovers removed",
      evidence: Array((evidence + strangers).prefix(5)))
  }

  // MARK: A directory

  /// The expected entries in the directory of a value or notification.
  private static let belongs: Set<String> = [
    "value.plist", "state.plist", "identifier", "lease", "lease/held", "lease/held/clean",
    "lease/taken.plist", "lease/kept-\(ProcessIdentity.boot)",
  ]

  /// Returns how many entries there are, and the unexpected ones.
  private func entries() throws -> (String, [String]) {
    var count = 0
    var rung: Set<Substring> = []
    let paths = try FileManager.default.subpathsOfDirectory(atPath: directory.container)
    let strangers = try paths.sorted().filter { path in
      let parts = path.split(separator: "/", maxSplits: 2)
      switch parts[0] {
      // The report covers the content of these.
      case "presence", "queues", "consumers", "logs", "mailboxes", "own", "container.plist":
        return false
      case "values", "notifications":
        // An entry on its way into the container may stay for a minute.
        guard parts.count > 1, !parts[1].hasPrefix(".new-") else { return false }
        guard parts.count > 2 else {
          count += 1
          return try fileStatus(directory.container + "/" + path).kind != .directory
        }
        if parts[0] == "notifications", parts[2].hasPrefix("bell-") {
          return !rung.insert(parts[1]).inserted
        }
        return !Self.belongs.contains(String(parts[2]))
      default: return true
      }
    }
    return ("\(count) directories", strangers)
  }

  // MARK: etcd

  /// Returns how many keys there are, and the unexpected ones, once all workers have ended and their
  /// leases with them: their lifetime, which a new leader counts from its own beginning, is over by then.
  private func keys(_ location: EtcdLocation) throws -> (String, [String]) {
    let client = EtcdClient(EtcdConfiguration(endpoints: location.endpoints))
    let prefix = Array((location.prefix + "/").utf8)
    let deadline = ContinuousClock.now + .seconds(15)
    var count = 0
    var strangers: [String] = []
    _ = try poll(until: deadline, every: .milliseconds(100)) {
      let items = try client.read(.prefix(prefix), until: deadline + .seconds(10)).items
      count = items.count
      strangers = items.filter { item in
        !Self.belongs(
          String(decoding: item.key.dropFirst(prefix.count), as: UTF8.self), item.value)
      }.map { String(decoding: $0.key, as: UTF8.self) }
      return strangers.isEmpty
    }
    return ("\(count) keys", strangers)
  }

  /// Whether a key stays when no process uses the container; see the page on the keys.
  static func belongs(_ key: String, _ value: [UInt8]) -> Bool {
    var parts = key.split(separator: "/", omittingEmptySubsequences: false)[...]
    if parts.first == "own" { parts = parts.dropFirst() }
    let (kind, part) = (parts.first ?? "", parts.dropFirst(2).first ?? "")
    switch kind {
    case "format", "history", "sweeps": return true
    // A removed value has only a stamp.
    case "v": return value.count > 16
    case "n", "s": return true
    case "p", "c": return ["last", "h"].contains(part)
    case "l": return ["", "h", "m"].contains(part)
    // No entry waits, none is taken, and no process consumes.
    case "q": return ["s", "r", "o", "k"].contains(part)
    default: return false
    }
  }
}

/// The check that a process stopped for longer than its lease is absent on etcd, and present again
/// when it continues.
func checkAbsence(of worker: WorkerProcess?, _ container: SharedContainer) throws -> Check {
  let promise = "a process that is stopped for too long is absent, and returns"
  guard let worker else { return Check(promise, "no process", evidence: []) }
  let presence = container.presence(PresenceWatch.name)
  func becomes(present: Bool) throws -> Bool {
    // Twice its lease's lifetime: etcd counts it from the last sign of life, and its looks for
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
  return Check(promise, "worker \(worker.life)", evidence: evidence)
}

/// The check that a restored snapshot, after which revisions are repeated, is noticed.
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
    "a restored snapshot takes back what came after it, and nothing else", "\(lost) changes",
    evidence: evidence)
}
