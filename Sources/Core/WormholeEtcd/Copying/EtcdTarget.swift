import Wormhole
import WormholeInspection

/// Writes keys below a prefix that no process can open before the end.
///
/// ```
/// format    "copying <stamp>" until the last step, by which each opener is refused
/// copying   the same, under the session of this process: whether it still lives
/// ```
///
/// Each step has the condition that `format` is as this process has put it. The next process that
/// copies to the place removes the leftovers of a dead one.
final class EtcdTarget: CopyTarget {
  private let container: EtcdContainer
  private let session: EtcdSession
  /// `format` as this process has put it.
  private let begun: KeyValue
  private var waiting: [EtcdTransaction.Operation] = []
  private var waitingBytes = 0

  /// Half of what etcd accepts, because JSON makes a request longer by a third.
  private static let stepBytes = 700_000
  private static let stepCount = 64

  let directory: String

  init(_ location: EtcdLocation, until deadline: ContinuousClock.Instant) throws {
    container = try EtcdContainer.unopened(location)
    (session, begun) = try reporting("copy the container", path: location.description) {
      [container] in
      let call = container.call(within: deadline)
      let session = try call.session()
      return (session, try Self.begin(call, session))
    }
    directory = try container.localDirectory()
  }

  private static func livingKey(_ container: EtcdContainer) -> [UInt8] {
    container.start + Array("copying".utf8)
  }

  private static func begin(
    _ container: EtcdContainer, _ session: EtcdSession
  ) throws -> KeyValue {
    let (format, living) = (container.formatKey, livingKey(container))
    let found = try container.item(format)
    let text = found.map { String(decoding: $0.value.prefix(64), as: UTF8.self) }
    if found == nil {
      guard try container.client.count(container.keys, until: container.callDeadline) == 0 else {
        throw refused(
          container, "there are keys of something else", remedy: "choose another prefix")
      }
    } else if text?.hasPrefix(EtcdContainer.copyingFormat) != true {
      throw refused(
        container, "there is a container already",
        remedy: "choose another prefix, or remove the old one")
    }
    let stamp = Array((EtcdContainer.copyingFormat + Nonce.next()).utf8)
    let commitRecord = EtcdContainer.CommitRecord(key: format, base: found, value: stamp)
    let outcome = try container.commit(
      EtcdTransaction(
        if: [.absent(living)],
        then: [.put(key: living, value: stamp, lease: session.lease)]
          + (found == nil ? [] : everythingElse(container).map { .delete($0) })),
      commitRecord)
    guard outcome.succeeded else {
      throw refused(
        container, "another process copies a container to this place, or did a moment ago",
        remedy: "wait for its end, or choose another prefix")
    }
    return commitRecord.item(at: outcome.revision)
  }

  private static func refused(
    _ container: EtcdContainer, _ reason: String, remedy: String
  ) -> WormholeError {
    WormholeError(
      .nameCollision, "copy the container", path: container.location.description, reason: reason,
      remedy: remedy)
  }

  private static func everythingElse(_ container: EtcdContainer) -> [KeyRange] {
    let (living, format) = (livingKey(container), container.formatKey)
    return [
      .range(from: container.start, to: living), .range(from: living + [0], to: format),
      .range(from: format + [0], to: KeyRange.end(ofPrefix: container.start)),
    ]
  }

  private var isOurs: [EtcdTransaction.Condition] { begun.unchanged }

  // MARK: Writing

  func put(_ item: CopiedKey) throws {
    let key = item.key(in: container)
    try reporting("copy the container", path: container.location(of: key)) {
      try EtcdContainer.requireSize(
        of: item.value, "copy the container", path: container.location(of: key),
        remedy: ", or remove it first")
      let size = key.count + item.value.count
      if waitingBytes + size > Self.stepBytes || waiting.count == Self.stepCount { try flush() }
      guard let lease = try lease(of: item) else { return }
      waiting.append(.put(key: key, value: item.value, lease: lease))
      waitingBytes += size
    }
  }

  /// The lease of a value that expires; 0 for one that does not, nil for an expired one.
  private func lease(of item: CopiedKey) throws -> Int64? {
    guard item.letter == .value else { return 0 }
    var bytes = Array(item.value.dropFirst(CopiedKey.stampBytes))
    guard let expiry = PublicationRecord.take(from: &bytes)?.expiry else { return 0 }
    return try container.grantLease(until: expiry)
  }

  private func flush() throws {
    guard !waiting.isEmpty else { return }
    let outcome = try container.repeating(EtcdTransaction(if: isOurs, then: waiting))
    guard outcome.succeeded else { throw overtaken }
    waiting = []
    waitingBytes = 0
  }

  private var overtaken: WormholeError {
    Self.refused(
      container, "this process was not heard of for too long, and another one began to copy there",
      remedy: "try again")
  }

  // MARK: The end

  func finish() throws {
    try reporting("copy the container", path: container.location.description) {
      try flush()
      let outcome = try container.commit(
        EtcdTransaction(if: isOurs, then: [.delete(.key(Self.livingKey(container)))]),
        .init(
          key: container.formatKey, base: begun,
          value: Array("\(EtcdContainer.formatVersion)".utf8)))
      guard outcome.succeeded else { throw overtaken }
    }
  }

  func abandon() {
    // If this fails, no process can open it, and the next copy to this place removes it.
    _ = try? container.repeating(EtcdTransaction(if: isOurs, then: [.delete(container.keys)]))
  }
}

extension CopiedKey {
  func key(in container: EtcdContainer) -> [UInt8] {
    container.key(letter.rawValue, isOwn: isOwn) + EncodedName.key(name)
      + Array((part.isEmpty ? "" : "/" + part).utf8)
  }
}
