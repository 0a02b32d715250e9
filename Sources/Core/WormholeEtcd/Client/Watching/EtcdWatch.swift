import WormholeSystem

package struct EtcdEvent: Hashable, Sendable {
  package enum Kind: Sendable {
    case put
    case delete
  }

  package let kind: Kind
  /// The key as the change left it. After a deletion only the key and the revision count.
  package let keyValue: KeyValue
}

/// The news of a watch.
package enum EtcdNews: Sendable {
  /// Changes in their order. Changes of one revision always come together.
  case events([EtcdEvent])
  /// The connection was lost, and the watch continues where it stopped. Nothing was missed, if the
  /// member is right; old members are not always, so look now and then.
  case resumed
  /// The watch has ended: `.compacted` if changes are missing, so that the whole range must be
  /// read; otherwise the cluster's refusal. A refusal of the connection, such as a wrong password,
  /// is reported once it has lasted for `EtcdConfiguration.patience`.
  case ended(EtcdError)
}

/// A watch of a range, until it is cancelled or reports its end.
///
/// All watches of a client share one connection. When it is lost, or its member is silent, it is
/// made again on the next member from the revision after the last delivered one; events that are
/// not newer than that are dropped.
package struct EtcdWatch: Cancelling {
  let number: Int
  let watches: EtcdWatches

  /// Ends the watch. News that is being delivered is the last.
  package func cancel() { watches.remove(number) }
}
