import WormholePropertyLists
import WormholeSystem

/// How the file of a value is changed, under its lease.
extension ValueFile {
  package func replace(_ bytes: [UInt8], _ terms: ChangeTerms) throws {
    if !Self.isPrepared(bytes, terms),
      try promptly(terms, { try publish(bytes, terms, under: $0) }) != nil
    {
      return
    }
    _ = try replacement(bytes, terms).run()
  }

  package func modify<Result: Sendable>(
    _ terms: ChangeTerms, _ decide: @escaping @Sendable (PlainSnapshot) throws -> (Edit, Result)
  ) throws -> Result {
    let result = try promptly(terms) { try modify(terms, under: $0, decide) }
    return try result ?? modification(terms, decide).run()
  }

  /// Does the work of a change if this process has kept the lease open, without the steps of a wait.
  ///
  /// - Returns: Nil if the change has to begin, or to begin again, as one that may wait.
  private func promptly<Result>(
    _ terms: ChangeTerms, _ work: (Lease) throws -> Result
  ) throws -> Result? {
    let root = container.root
    guard terms.durability == .standard, !root.pause.isExpected, let keptLease else { return nil }
    return try reporting("change the value", path: path) {
      guard let lease = try keptLease.take(term: terms.term) else { return nil }
      return try terms.attempt(under: lease, path) { try work(lease) }
    }
  }

  /// Whether the content is written before the lease is taken.
  private static func isPrepared(_ bytes: [UInt8], _ terms: ChangeTerms) -> Bool {
    terms.durability == .durable || bytes.count >= PreparedContent.worthwhileBytes
  }

  package func replacement(_ bytes: [UInt8]?, _ terms: ChangeTerms) -> sending any Waiting<Bool> {
    guard let bytes else { return removal(terms) }
    let value = self
    let durability = terms.durability
    let content: (@Sendable () -> PublishedContent)? =
      Self.isPrepared(bytes, terms) ? { @Sendable in value.content(bytes, terms) } : nil
    return Change(
      directory, protecting: name, keeping: keptLease, terms, preparing: content
    ) { lease, prepared in
      if let prepared {
        terms.willPublish(prepared.stamp)
        try lease.publish(
          prepared: prepared, as: value.name, exists: true, durability: durability)
        value.followUp(durability)
      } else {
        try value.publish(bytes, terms, under: lease)
      }
      return true
    }
  }

  private func publish(_ bytes: [UInt8], _ terms: ChangeTerms, under lease: Lease) throws {
    try publish(content(bytes, terms, lease: lease), lease, terms: terms, exists: true)
    followUp(terms.durability)
  }

  private func removal(_ terms: ChangeTerms) -> sending any Waiting<Bool> {
    let value = self
    // A removal creates no name, so it need not flush the names above it to the disk.
    var beforeLease = terms
    beforeLease.durability = .standard
    return Change(directory, protecting: name, beforeLease) { lease, _ in
      try value.remove(lease, terms.durability)
    }
  }

  package func modification<Result: Sendable>(
    _ terms: ChangeTerms, _ decide: @escaping @Sendable (PlainSnapshot) throws -> (Edit, Result)
  ) -> sending any Waiting<Result> {
    let value = self
    return Change(directory, protecting: name, keeping: keptLease, terms) { lease, _ in
      try value.modify(terms, under: lease, decide)
    }
  }

  private func modify<Result>(
    _ terms: ChangeTerms, under lease: Lease, _ decide: (PlainSnapshot) throws -> (Edit, Result)
  ) throws -> Result {
    let durability = terms.durability
    let old = try snapshot(limits: .standard)
    let (edit, result): (Edit, Result)
    do { (edit, result) = try decide(old) } catch { throw BodyError(cause: error) }
    switch edit {
    case .keep where old.isExpired: _ = try remove(lease, durability)
    case .keep: if durability == .durable { try lease.synchronize(name) }
    case .replace(let bytes):
      try publish(
        content(bytes, terms, lease: lease, after: old), lease, terms: terms,
        exists: !old.isAbsent)
      followUp(durability)
    case .remove: _ = try remove(lease, durability)
    }
    return result
  }

  private func remove(_ lease: Lease, _ durability: Durability) throws -> Bool {
    // An expired value is removed, but counts as absent.
    let isValue = try version() != nil
    let isRemoved = try lease.remove(name, durability: durability)
    followUp(durability)
    return isRemoved && isValue
  }

  /// Returns bytes together with the record of their publication by this process.
  ///
  /// - Parameter old: The content that they replace; nil if it was not read.
  func content(
    _ bytes: [UInt8], _ terms: ChangeTerms, lease: Lease? = nil, after old: PlainSnapshot? = nil
  ) -> PublishedContent {
    PublishedContent(
      bytes,
      PublicationRecord(
        lease, peer: terms.peer ?? ActivePeers.single(in: container.root.path),
        after: old?.publication,
        expiry: terms.expiry))
  }

  private func publish(
    _ content: PublishedContent, _ lease: Lease, terms: ChangeTerms, exists: Bool
  ) throws {
    let syncLevel = try syncLevel(terms.durability, content)
    try lease.publish(
      content, as: name, exists: exists, syncLevel: syncLevel, willPublish: terms.willPublish)
    if case .relaxed = syncLevel, let keptLease { lease.keepOpen(as: keptLease) }
  }

  private func syncLevel(_ durability: Durability, _ content: PublishedContent) throws -> SyncLevel
  {
    guard durability == .standard else { return .durable }
    let root = container.root
    let blockBytes = try root.handle().status.blockBytes
    let maximum =
      content.hasRecord && blockBytes >= PublishedContent.blockBytes
      ? KeptVersion.maximumBytes : min(PublishedContent.blockBytes, blockBytes)
    guard directory.kind.outlivesProcesses, content.count <= maximum, !content.hasEmptyBlocks else {
      return .written
    }
    return .relaxed(isFollowedUp: root.followUps.contains(relativePath, followUpMark))
  }

  func followUp(_ durability: Durability) {
    guard durability == .standard, directory.kind.outlivesProcesses else { return }
    container.root.followUps.add(relativePath, directory.kind, in: container.root, followUpMark)
  }

  package func follow(
    leading monitor: ChangeMonitor?, _ signal: @escaping @Sendable () -> Void
  ) throws -> (any ValueFollowing)? {
    let watch = try directory.watch(showsInFiles: true, by: monitor ?? .shared, signal)
    return monitor == nil || watch.detection == .events
      ? FollowedFile(file: self, watch: watch) : nil
  }
}

/// A file that is watched, and read on demand.
private struct FollowedFile: ValueFollowing {
  let file: ValueFile
  let watch: Watch

  var detection: ChangeDetection { watch.detection }

  func cancel() { watch.cancel() }

  func snapshot(mayWait: Bool) throws -> PlainSnapshot? {
    guard !mayWait else { return try file.snapshot(limits: .standard) }
    return watch.hasEvents ? file.promptSnapshot() : nil
  }
}
