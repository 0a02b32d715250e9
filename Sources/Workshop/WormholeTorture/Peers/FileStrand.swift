import FoundationEssentials
import Wormhole
import WormholePeers
import WormholePropertyLists
import WormholeSystem
import WormholeWorkshop

/// A strand that sends files to other workers, cancels some, and receives files for its own name.
struct FileStrand {
  let session: PeerSession
  let recorder: Recorder
  let arguments: WorkerArguments

  func turn(_ random: inout SeededGenerator) throws {
    if !session.isActive { try session.activate(until: .now + .seconds(5)) }
    if random.chance(30) {
      let slot = Int.random(in: 0..<arguments.processes, using: &random)
      for _ in 0..<Int.random(in: 1...4, using: &random) {
        let (number, transfer) = try send(
          to: RequestStrand.name(slot: slot), isMoved: random.chance(30))
        if random.chance(10) { try cancel(transfer, number, after: random.milliseconds(0...20)) }
      }
    } else {
      try receive(&random)
    }
  }

  private func send(to peer: String, isMoved: Bool) throws -> (UInt64, PeerFileTransfer) {
    let number = recorder.newNumber()
    let path = arguments.directory.file(number)
    let file = try FileDescriptor.open(path, [.writeOnly, .create])
    try file.writeAll(Self.content(number))
    try recorder.note(.file(.sending(place: peer, slot: arguments.slot, number: number)))
    let transfer = try session.transfer(
      fileAt: URL(filePath: path), to: peer, metadata: PropertyListValue(number),
      options: PeerFileOptions(isMoved: isMoved))
    // From here on delivery is promised, even if this process is killed.
    try recorder.note(.file(.sent(number: number, id: transfer.id)))
    try recorder.note(.did("transfer"))
    return (number, transfer)
  }

  /// Cancels it before it is copied, meanwhile, or when it may have been delivered. After an error
  /// the outcome is open.
  private func cancel(_ transfer: PeerFileTransfer, _ number: UInt64, after pause: Duration) throws
  {
    pauseThread(pause)
    try recorder.note(.file(.cancelling(number: number)))
    let isCancelled = try transfer.cancel()
    try recorder.note(.file(.cancelled(number: number, isCancelled)))
    try recorder.note(.did("cancel a transfer"))
  }

  private func receive(_ random: inout SeededGenerator) throws {
    let beginning = bootTimeNanoseconds()
    let receiver = try session.receiveFiles(until: .now + random.milliseconds(0...150))
    defer { receiver.close() }
    let tenure = recorder.newTenure()
    try recorder.note(
      .file(
        .consuming(
          place: session.name, tenure: tenure, from: beginning, to: bootTimeNanoseconds())))
    for _ in 0..<Int.random(in: 1...10, using: &random) {
      let leaves = random.chance(5)
      if random.chance(1) { try Program.send(.stop, to: Program.processID) }
      let isThere = try Self.receive(
        receiver, name: session.name, tenure: tenure, until: .now + random.milliseconds(0...10),
        leaves: leaves
      ) { try recorder.note($0) }
      guard isThere else { return }
    }
  }

  /// - Returns: Whether there was a file.
  static func receive(
    _ receiver: PeerReceiver<PeerFile>, name: String, tenure: String,
    until deadline: ContinuousClock.Instant, leaves: Bool = false,
    _ note: (JournalEntry) throws -> Void
  ) throws -> Bool {
    let beginning = bootTimeNanoseconds()
    guard let file = try receiver.next(until: deadline) else { return false }
    let number = file.metadata?.uint64Value ?? 0
    try note(
      .file(
        .taken(
          place: name, tenure: tenure, slot: Int(file.sender.dropFirst(7)) ?? -1, number: number,
          isRedelivery: file.isRedelivery, from: beginning, to: bootTimeNanoseconds())))
    do {
      if try !isWhole(number, at: file.url.path) {
        try note(.torn("file \(number) came with bytes that are not its own"))
      }
    } catch let error as Errno {
      // The file was available until this process was stopped and replaced; the acknowledgement
      // will report that.
      guard error == .noSuchFile else { throw error }
    }
    guard !leaves else { return true }
    try note(.file(.acknowledging(place: name, number: number)))
    try file.acknowledge()
    try note(.file(.acknowledged(place: name, number: number, at: bootTimeNanoseconds())))
    try note(.did("receive"))
    return true
  }

  /// - Throws: `.noSuchFile`.
  private static func isWhole(_ number: UInt64, at path: String) throws(Errno) -> Bool {
    let content = content(number)
    let bytes = try FileDescriptor.open(path, .readOnly).readToEnd(
      expectedBytes: content.count, maximumBytes: 4 << 20)
    return bytes.withUnsafeBytes { bytes in
      content.withUnsafeBytes { compareBytes(bytes, $0) == 0 }
    }
  }

  /// Whether a sent file is back in its place.
  static func isThere(_ number: UInt64, in directory: RunDirectory) throws -> Bool {
    try ifPresent(isWhole(number, at: directory.file(number))) ?? false
  }

  /// The content of a file follows from its number; some files are empty, and some have several pieces on
  /// etcd.
  private static func content(_ number: UInt64) -> [UInt8] {
    let sizes: [UInt64] = [0, 1, 4_096, 40_000, 200_000, 1_300_000]
    let size = Int(sizes[Int(mix(~number) % UInt64(sizes.count))])
    let words = [UInt64](repeating: mix(number), count: size / 8 + 1)
    return words.withUnsafeBytes { Array($0.prefix(size)) }
  }

  /// Completes all pending copies and receives the files, after all workers have ended.
  static func drain(
    _ container: SharedContainer, _ processes: Int, life: Int
  ) throws -> [JournalEntry] {
    var entries: [JournalEntry] = []
    let sessions = try (0..<processes).map {
      try PeerSession(RequestStrand.name(slot: $0), in: container)
    }
    for session in sessions {
      try session.activate()
      for transfer in try session.fileTransfers() {
        do {
          try transfer.waitUntilStored(until: .now + .seconds(30))
        } catch let error as PeerError where error.code == .cancelled {
          // Given up by a process that has ended meanwhile. If it was not, the file counts as lost.
          continue
        }
      }
    }
    for session in sessions {
      let beginning = bootTimeNanoseconds()
      let receiver = try session.receiveFiles()
      defer { receiver.close() }
      let tenure = "\(life)-\(session.name)"
      entries.append(
        .file(
          .consuming(
            place: session.name, tenure: tenure, from: beginning, to: bootTimeNanoseconds())))
      while try Self.receive(
        receiver, name: session.name, tenure: tenure, until: .now, { entries.append($0) })
      {}
      session.close()
    }
    return entries
  }
}
