import Wormhole
import WormholeInspection

extension SharedContainer {
  /// Removes unneeded keys from a container on etcd: records of queues that are older than a day,
  /// and the keys of values that were removed.
  func sweepKeys(_ etcd: EtcdContainer, expiring expire: () throws -> [String]) throws
    -> SweepReport
  {
    var outcome = SweepReport()
    for queue in try queueNames().map({ queue($0) }) + own.queueNames().map({ own.queue($0) }) {
      try outcome.attempt("sweep a queue", path: queue.path) { outcome in
        outcome.removed += try queue.expire()
        try queue.sweep()
      }
    }
    try outcome.attempt("sweep what has expired", path: location) { $0.removed += try expire() }
    try outcome.attempt("sweep the values", path: location) { outcome in
      for kind in [NameKind.value, .ownValue] {
        outcome.names += try etcd.removeEmptyValues(of: kind)
      }
    }
    return outcome
  }
}
