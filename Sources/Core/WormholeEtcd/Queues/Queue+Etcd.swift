import Wormhole

extension QueueEntry {
  /// Holds on etcd as long as the consumer that has it was not replaced; nil in a directory.
  var etcdFence: EtcdTransaction.Condition? { (batch.store as? EtcdTaken)?.fence }
}
