import Wormhole
import WormholeEtcd
import WormholeInspection
import WormholeSystem

/// The check that a swept container on etcd holds only expected keys, once all workers have ended
/// and their leases with them.
struct EtcdLeftovers {
  let location: EtcdLocation

  /// The time after which the leases of killed workers have certainly ended: their lifetime, which
  /// a new leader counts from its own beginning.
  private static let patience: Duration = .seconds(15)

  func check(after sweep: SharedContainer.SweepReport, _ container: SharedContainer) throws -> Check
  {
    let client = EtcdClient(EtcdConfiguration(endpoints: location.endpoints))
    let prefix = Array((location.prefix + "/").utf8)
    let deadline = ContinuousClock.now + Self.patience
    while true {
      let items = try client.read(.prefix(prefix), until: deadline).items
      let strangers = items.filter { item in
        !Self.belongs(
          String(decoding: item.key.dropFirst(prefix.count), as: UTF8.self), item.value)
      }
      guard strangers.isEmpty || ContinuousClock.now >= deadline else {
        pauseThread(.milliseconds(100))
        continue
      }
      var evidence = sweep.failures.map { "the sweep: \($0)" }
      evidence += try container.report().leftovers.map { "\($0.kind): \($0.path)" }
      evidence += strangers.map { String(decoding: $0.key, as: UTF8.self) }
      return Check(
        promise: "a sweep leaves nothing behind",
        extent: "\(items.count) keys, \(sweep.removed.count) leftovers removed",
        evidence: Array(evidence.prefix(5)))
    }
  }

  /// Whether a key stays when no process uses the container; see the page on the keys.
  static func belongs(_ key: String, _ value: [UInt8]) -> Bool {
    var parts = key.split(separator: "/", omittingEmptySubsequences: false)[...]
    if parts.first == "own" { parts = parts.dropFirst() }
    let (kind, part) = (parts.first ?? "", parts.dropFirst(2).first ?? "")
    switch kind {
    case "format", "history": return true
    // A removed value has only a stamp.
    case "v": return value.count > 16
    case "n", "s": return true
    case "p", "c": return ["last", "h"].contains(part)
    // No entry waits, none is taken, and no process consumes.
    case "q": return ["s", "r", "o", "k"].contains(part)
    default: return false
    }
  }
}
