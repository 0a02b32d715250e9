import WormholeSystem

/// The publication that an observer saw last: its stamp and its record.
package struct Publication: Sendable {
  /// Nil if there was no value.
  let stamp: Stamp?
  let record: PublicationRecord?

  /// Returns the process that made every change since another publication; nil if it is unknown, or
  /// if there were several.
  ///
  /// Records show this only for publications that change the previous content (`update`):
  /// successive ones by one process have the same base.
  ///
  /// - Parameter last: Nil if there was no value.
  package func publisher(since last: Publication?) -> Publisher? {
    guard let record else { return nil }
    switch record.base {
    case .unknown: return nil
    case last?.base ?? .nothing: return record.publisher
    case let base:
      guard let lastRecord = last?.record, lastRecord.base == base,
        lastRecord.isOfSameProcess(as: record)
      else { return nil }
      return record.publisher
    }
  }

  /// The base of a publication that follows this one.
  fileprivate var base: PublicationRecord.Base {
    stamp.map { .stamp(seconds: $0.seconds, nanoseconds: $0.nanoseconds) } ?? .nothing
  }
}

extension PublicationRecord {
  /// Creates the record of a publication that this process makes now.
  ///
  /// - Parameters:
  ///   - lease: The lease under which it is made, if it is held already; it knows the process.
  ///   - old: The content that it replaces; nil if it was not read.
  package init(_ lease: Lease?, peer: String?, after old: Publication?, expiry: Int64?) {
    let processID = lease?.declaration.identity.processID ?? ProcessIdentity.current.processID
    self.init(processID: processID, peer: peer, base: old?.base ?? .unknown, expiry: expiry)
    guard let record = old?.record, record.isOfSameProcess(as: self), record.base != .unknown else {
      return
    }
    takeBase(of: record)
  }
}

extension SharedContainer {
  /// Notes that this process is that peer from now on, for the records of its publications here.
  package func beginPublishing(as peer: String) { ActivePeers.add(peer, in: root.path) }

  /// Notes that this process is no longer that peer.
  package func endPublishing(as peer: String) { ActivePeers.remove(peer, in: root.path) }
}
