package import WormholeEtcd

/// What the steps with files need of a queue on etcd.
extension Queue {
  /// The keys of its attachments; nil in a directory.
  package var etcdAttachments: EtcdAttachments? {
    guard case .etcd(let container) = container.engine else { return nil }
    return EtcdQueue(self, in: container).attachments
  }
}

extension QueueEntry {
  /// Holds on etcd as long as the consumer that has it was not replaced; nil in a directory.
  package var etcdFence: EtcdTransaction.Condition? { (batch.store as? EtcdTaken)?.fence }
}
