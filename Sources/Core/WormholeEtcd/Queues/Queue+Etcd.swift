import Wormhole

extension QueueEntry {
  /// Holds on etcd until the consumer that has the entry was replaced; nil in a directory.
  var etcdFence: EtcdTransaction.Condition? { (batch.store as? EtcdTaken)?.fence }
}
