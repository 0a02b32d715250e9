import WormholeSystem

extension Log {
  /// The process that reads for a subscriber; nil if there is none.
  package func member(for subscriber: String) throws -> PresenceMember? {
    let presence = LogCursor.presence(subscriber, of: self)
    return try presence.members().first { $0.isExclusive }
  }

  /// Takes away messages that are too old, and removes leftovers of dead processes.
  ///
  /// - Returns: the removed paths.
  package func sweep(until deadline: ContinuousClock.Instant) throws -> [String] {
    guard try memory.state(of: value) != nil else { return [] }
    var gone = try trim(until: deadline)
    if let first = try memory.state(of: value)?.first { gone += try removeLeftovers(below: first) }
    return gone.sorted().map { path + "/" + LogDirectory.path($0) }
  }

  /// Removes the position of a subscriber whose log is gone.
  ///
  /// - Returns: the positions' identifiers.
  package static func sweepPositions(
    in container: SharedContainer, until deadline: ContinuousClock.Instant
  ) throws -> [String] {
    try container.own.valueIdentifiers().filter { identifier in
      guard let (name, subscriber) = LogCursor.subscriber(ofOwnName: identifier) else {
        return false
      }
      let log = container.log(name)
      guard try log.value.directory.open() == nil, try log.member(for: subscriber) == nil else {
        return false
      }
      return try container.own.value(identifier).remove(until: deadline)
    }
  }

  /// Removes the file of an empty log whose bounds were never set, under its lease.
  ///
  /// A process that appends at this moment waits, and then begins the log again, with another id: a
  /// subscriber of the old one then reads the new one from its beginning.
  ///
  /// - Returns: whether the log no longer exists.
  package func removeFile(_ lease: Lease) throws -> Bool {
    guard try LogState.read(value.snapshot(), at: value.path)?.setBounds == nil,
      let place = try LogDirectory(self), try place.removeEntries()
    else { return false }
    _ = try lease.remove(value.fileName, durability: .standard)
    return true
  }
}
