import WormholeSystem

/// A change of one key.
package struct EtcdEvent: Hashable, Sendable {
  package enum Kind: Sendable {
    case put
    case delete
  }

  package let kind: Kind
  /// The key as the change left it. After a deletion only the key and the revision count.
  package let keyValue: KeyValue

  package init(kind: Kind, keyValue: KeyValue) {
    self.kind = kind
    self.keyValue = keyValue
  }
}

/// What a watch tells.
package enum EtcdNews: Sendable {
  /// Changes in their order. Those of one revision always come together.
  case events([EtcdEvent])
  /// The connection was lost, and the watch goes on where it was. Nothing was missed, as far as the
  /// member is right; old ones are not always (etcd #17529), so a look now and then does no harm.
  case resumed
  /// The watch has ended: `.compacted` if changes are missing, so that only reading all of it helps;
  /// otherwise what the cluster refuses. A refusal of the connection, such as a wrong password, is
  /// told once it has lasted for `EtcdConfiguration.patience`.
  case ended(EtcdError)
}

/// A watch of a range, until it is cancelled or told that it has ended.
///
/// All watches of a client share one connection. When it is lost, or its member is silent, it is
/// made again on the next member from the revision after the last one that was handed out; events
/// that are not newer than that are dropped.
package struct EtcdWatch: Cancelling {
  let number: Int
  let watches: EtcdWatches

  /// Ends the watch. News that is being handed out is the last.
  package func cancel() { watches.remove(number) }
}
