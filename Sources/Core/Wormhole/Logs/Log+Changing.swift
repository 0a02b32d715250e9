import WormholePropertyLists
import WormholeSystem

/// A message that was appended, and whether messages have to be taken away.
package struct LogAppended: Sendable {
  let number: Int
  /// Whether the bounds are exceeded by enough.
  let isTrimDue: Bool

  /// - Parameters:
  ///   - bytes: the bytes that this process has appended since it learned the state.
  ///   - size: those of the last message.
  package init(_ number: Int, appended bytes: Int, size: Int, _ state: LogState) {
    self.number = number
    isTrimDue = state.isTrimDue(at: number, appended: bytes, size: size)
  }
}

/// Beginning a log, and taking messages away.
extension PlainLog {
  private static var atOnce: Int { 10_000 }

  package func tooLarge(_ bytes: Int, _ state: LogState) -> WormholeError {
    WormholeError(
      .tooLarge, "append to \"\(name)\"", path: path,
      reason: "it has \(bytes) bytes, and the log keeps at most \(state.bounds.bytes)",
      remedy: "share large content as a file, or set wider bounds")
  }

  /// Publishes that the log exists, or that the machine has started; and sets its bounds.
  func begin(_ bounds: LogBounds? = nil, until deadline: ContinuousClock.Instant) throws {
    let log = self
    let state = try value.edit(.init(.durable, until: deadline)) { snapshot -> (Edit, LogState?) in
      let old = try LogState.read(snapshot, at: log.value.path)
      var state = old ?? LogState(id: Nonce.next())
      let open = try log.store.open()
      // A planted message has no number from which a log could go on.
      if old == nil {
        state.head = try open?.numbers().filter(LogState.mayBeHead).max() ?? 0
      }
      let boot = log.store.boot
      if !state.isCurrent(in: boot) {
        let head = try open?.head(after: log.memory.head(state)) ?? 0
        state.boots.append(.init(id: boot, first: head + 1))
        state.boots.removeFirst(max(0, state.boots.count - LogState.rememberedBoots))
      }
      if let bounds { state.setBounds = bounds }
      guard state != old else { return (.keep, nil) }
      return (.replace(try state.content.binaryBytes()), state)
    }
    // Leftovers of a process that died while it took messages away.
    if let state { try removeLeftovers(below: state.first) }
  }

  /// Removes messages that were taken away and not unlinked.
  @discardableResult
  package func removeLeftovers(below first: Int) throws -> [String] {
    try unlink(0..<first, atMost: 0)
  }

  /// - Parameter count: if there are more, the log is listed: a gap made by other programs may have any
  ///   length.
  private func unlink(_ gone: Range<Int>, atMost count: Int) throws -> [String] {
    guard !gone.isEmpty else { return [] }
    return try reporting("take old messages of \"\(name)\" away", path: path) {
      guard let open = try store.open() else { return [] }
      guard gone.count > count else { return try open.remove(Array(gone)) }
      return try open.remove(open.numbers().filter { gone.contains($0) }.sorted())
    }
  }

  /// Takes away the messages that exceed the bounds.
  ///
  /// - Returns: their places, for people.
  @discardableResult
  package func trim(until deadline: ContinuousClock.Instant) throws -> [String] {
    var all: [String] = []
    while true {
      let gone = try trimOnce(until: deadline)
      all += gone
      // A lease is not held for long, so some may remain.
      guard gone.count >= Self.atOnce else { return all }
    }
  }

  private func trimOnce(until deadline: ContinuousClock.Instant) throws -> [String] {
    let log = self
    let gone = try value.edit(.init(until: deadline)) { snapshot -> (Edit, Range<Int>) in
      guard let old = try LogState.read(snapshot, at: log.value.path),
        let open = try log.store.open()
      else { return (.keep, 0..<0) }
      var state = old
      try state.count(to: open.head(after: log.memory.head(state)), open, Self.atOnce)
      try state.takeAway(open, Self.atOnce)
      guard state != old else { return (.keep, 0..<0) }
      return (.replace(try state.content.binaryBytes()), old.first..<state.first)
    }
    return try unlink(gone, atMost: Self.atOnce)
  }
}

extension PlainLog {
  /// The process that reads for a subscriber; nil if there is none.
  package func member(for subscriber: String) throws -> PresenceMember? {
    let presence = LogCursor.presence(subscriber, of: self)
    return try presence.members().first { $0.isExclusive }
  }

  /// Takes away messages that are too old, and removes leftovers of dead processes.
  package func sweep(until deadline: ContinuousClock.Instant) throws -> [String] {
    guard try memory.state(of: value) != nil else { return [] }
    var gone = try trim(until: deadline)
    if let first = try memory.state(of: value)?.first { gone += try removeLeftovers(below: first) }
    return gone.ordered(by: <)
  }

  /// Removes the position of a subscriber whose log is gone.
  ///
  /// - Parameter faults: takes the positions that cannot be looked at.
  /// - Returns: the positions' identifiers.
  package static func sweepPositions(
    in container: SharedContainer, _ faults: inout NameFaults,
    until deadline: ContinuousClock.Instant
  ) throws -> [String] {
    let logs: @Sendable () throws -> Set<String> = {
      Set(try container.logNames().map { EncodedName($0).component })
    }
    let found = try logs()
    return try container.own.valueIdentifiers().filter { identifier in
      // The presence of its reader has the same name.
      guard let (directory, _) = LogCursor.subscriber(ofOwnName: identifier),
        !found.contains(directory)
      else { return false }
      let value = container.own.value(identifier)
      return try faults.attempt("sweep the position of a subscriber", path: value.path) {
        guard try !container.own.presence(identifier).members().contains(where: \.isExclusive)
        else { return false }
        // The log may have begun again since, and a subscriber have read it.
        return try value.edit(.init(until: deadline)) { snapshot in
          try snapshot.version == nil
            || !LeaseFault.sweepingPositionsBlindly.isActive && logs().contains(directory)
            ? (.keep, false) : (.remove, true)
        }
      } ?? false
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
      let open = try LogDirectory(value.directory), try open.removeEntries()
    else { return false }
    _ = try lease.remove(value.fileName, durability: .standard)
    return true
  }
}

extension LogState {
  /// Returns whether the bounds are exceeded by a sixteenth, or may be.
  ///
  /// - Parameters:
  ///   - bytes: the bytes that this process has appended since it learned this state.
  ///   - size: those of the last message. Other processes may have appended equally large ones,
  ///     which no process has counted: each of a shell's commands is a process.
  func isTrimDue(at number: Int, appended bytes: Int, size: Int) -> Bool {
    func exceeds(_ count: Int, _ bound: Int) -> Bool {
      let bound = min(bound, Self.largest)
      return count > bound + bound / 16
    }
    let (product, isHuge) = (number - head).multipliedReportingOverflow(by: size)
    let uncounted = isHuge ? Self.largest : min(product, Self.largest)
    guard !exceeds(number - first + 1, bounds.messages),
      !exceeds(self.bytes + max(bytes, uncounted), bounds.bytes)
    else { return true }
    guard let age = bounds.age, first <= head, number - head < Self.stride else {
      // So that other processes find the end soon, and its age is known.
      return number - head >= (bounds.age == nil ? Self.stride : 1)
    }
    let now = realTime().seconds
    // A future time was stored while the clock was ahead.
    return oldest > now || .seconds(now - oldest) > age + age / 16
  }

  /// Adds the messages up to the end of the log.
  fileprivate mutating func count(
    to end: Int, _ open: any OpenLog, _ limit: Int
  ) throws {
    var numbers: [Int]?
    for _ in 0..<limit where head < end {
      if let status = try open.status(head + 1) {
        head += 1
        if head >= first { bytes = min(bytes + Self.size(status), Self.largest) }
      } else {
        let next = try Self.next(after: head + 1, open, &numbers) ?? end + 1
        head = min(next - 1, end)
      }
    }
  }

  private static func size(_ status: LogMessageStatus) -> Int {
    Int(min(status.size, Int64(largest)))
  }

  /// Returns the first message after one that is missing, because another program removed it.
  private static func next(
    after number: Int, _ open: any OpenLog, _ numbers: inout [Int]?
  ) throws -> Int? {
    if numbers == nil { numbers = try open.numbers().sorted() }
    return numbers?.first { $0 > number }
  }

  /// Forgets the oldest until the bounds hold.
  fileprivate mutating func takeAway(
    _ open: any OpenLog, _ limit: Int
  ) throws {
    let now = realTime().seconds
    var numbers: [Int]?
    // The number of a message that is as old as the first, or older, and its time.
    var later = (number: 0, appended: Int64(0))
    for _ in 0..<limit where first <= head {
      guard let status = try open.status(first) else {
        let next = try Self.next(after: first, open, &numbers) ?? head + 1
        first = min(next, head + 1)
        continue
      }
      if later.number < first { later = (first, status.appended) }
      // The clock was ahead then, or the file system stores any time: a later message decides.
      var step = 1
      while later.appended > now, later.number < head {
        later.number = min(later.number + step, head)
        later.appended = try open.status(later.number)?.appended ?? later.appended
        step *= 2
      }
      // A file system may store any time, even one before 1970.
      let appended = max(0, min(status.appended, later.appended))
      let isOld = bounds.age.map { .seconds(now - appended) >= $0 } ?? false
      guard head - first + 1 > bounds.messages || bytes > bounds.bytes || isOld else {
        oldest = appended
        return
      }
      bytes = max(0, bytes - Self.size(status))
      first += 1
    }
    if first > head { bytes = 0 }
  }
}
