import FoundationEssentials
import Synchronization
import Wormhole
import WormholePeers

extension CommandDescription {
  static let peerTransfer = CommandDescription(
    name: "transfer",
    abstract: "Queue a file, which is delivered when the peer receives.",
    discussion: """
      The command returns when the content is in the container, and prints the transfer's id, for \
      'peer cancel'. A bar shows the progress where standard error is a terminal. An interruption \
      before that cancels the transfer. Metadata is any JSON value, for the receiver.
      """,
    positionals: [
      .peer, PositionalDescription(name: "file", help: "A regular file.", kind: .file),
    ],
    options: [
      .value("metadata", "json", .text, help: "A value that the receiver gets with the file."),
      .flag(
        "move",
        help: "Move the file instead of copying it: at once on the same file system."),
      .from, .durable("it"), .expires, .wait, .timeout,
    ],
    problem: ParsedArguments.waitProblem
  ) { arguments, environment in
    // Each piece of a file has the time of a call.
    try CallLimit.lifted { try transfer(arguments, environment) }
  }
}

private func transfer(_ arguments: ParsedArguments, _ environment: CommandEnvironment) throws {
  let deadline = arguments.deadline()
  let file = arguments.requiredText("file")
  let metadata = try arguments.text("metadata").map {
    try JSONInput.read(Array($0.utf8), source: "the metadata")
  }
  let session = try arguments.openSession(environment)
  let interruption = try Interruption()
  let transfer = try session.transfer(
    fileAt: URL(filePath: CommandLinePath.absolute(file, to: "transfer")),
    to: arguments.requiredText("peer"), metadata: metadata,
    options: PeerFileOptions(
      isMoved: arguments.has("move"), durability: arguments.durability,
      expiry: arguments.seconds("expires"), receiptTerm: .dayAfterProcessing))
  defer { session.finishCopying(until: .now + .seconds(5)) }
  try store(transfer, file, interruption, environment)
  try environment.print(line: transfer.id)
  guard arguments.text("wait") != nil else { return }
  guard
    let status = try interruption.wait(for: { try await transfer.finalStatus(until: deadline) })
  else { throw ExitStatus.no }
  // The exit status tells the outcome, so its record is not needed any more.
  if status.isEnd { try transfer.removeReceipt() }
  try status.end(of: file, environment)
}

private func store(
  _ transfer: PeerFileTransfer, _ file: String, _ interruption: Interruption,
  _ environment: CommandEnvironment
) throws {
  let bar = environment.errorColumns.map {
    ProgressBar(file: file, columns: $0, write: environment.writeStandardError)
  }
  let observation = bar.map { bar in transfer.observeProgress { bar.show($0) } }
  defer {
    observation?.cancel()
    bar?.end()
  }
  let stored: Void?
  do {
    stored = try interruption.wait { try await transfer.waitUntilStored() }
  } catch {
    // A file that is stored after all is not a failure; one that is not must not be sent later.
    if try takeBack(transfer, file, after: error) { throw error }
    return
  }
  guard stored == nil else { return }
  let isCancelled = try transfer.cancel()
  throw CommandError(
    verb: "transfer", object: file,
    reason: isCancelled
      ? "interrupted; it is cancelled" : "interrupted, but its receiver already has it",
    status: .no)
}

/// - Returns: whether the transfer is cancelled; false when it is stored, or was received already.
private func takeBack(
  _ transfer: PeerFileTransfer, _ file: String, after error: any Error
) throws -> Bool {
  do {
    if try transfer.cancel() { return true }
    switch try transfer.status() {
    case .stored, .taken, .processed: return false
    case .cancelled, .superseded, .expired, .failed: return true
    }
  } catch let second {
    throw CommandError(
      verb: "transfer", object: file,
      reason:
        "\(error); and it may not be cancelled: \(second). '\(ProgramName.called) peer outstanding "
        + "\(transfer.sender)' lists its status, and '\(ProgramName.called) peer cancel \(transfer.id)' "
        + "cancels it", status: .inputOutput)
  }
}

/// A line on a terminal that shows the progress of a file.
final class ProgressBar: Sendable {
  private let file: String
  private let columns: Int
  private let write: @Sendable ([UInt8]) -> Void
  private let hasEnded = Mutex(false)

  private static let barColumns = 24

  init(file: String, columns: Int, write: @escaping @Sendable ([UInt8]) -> Void) {
    self.file = file.onOneLine
    self.columns = columns
    self.write = write
  }

  func show(_ progress: PeerFileProgress) {
    let text = line(completed: progress.completedBytes, total: progress.totalBytes)
    // The lock excludes that a last report from another thread comes after the line was cleared.
    hasEnded.withLock { if !$0 { write(Array("\r\(text)".utf8)) } }
  }

  /// Clears the line for the next output.
  func end() {
    hasEnded.withLock {
      $0 = true
      write(Array("\r\u{1B}[K".utf8))
    }
  }

  /// `[########----------------]  33 %  12 of 36 MB  film.mov`, cut to the width of the terminal.
  func line(completed: Int64, total: Int64) -> String {
    let fraction = total > 0 ? min(max(Double(completed) / Double(total), 0), 1) : 1
    let full = Int(fraction * Double(Self.barColumns))
    let bar =
      String(repeating: "#", count: full) + String(repeating: "-", count: Self.barColumns - full)
    let percent = String(Int(fraction * 100))
    let padding = String(repeating: " ", count: 3 - percent.count)
    let text =
      "[\(bar)] \(padding)\(percent) %  \(completed / 1_000_000) of \(total / 1_000_000) MB  \(file)"
    // The last column stays empty: some terminals wrap when it is filled.
    return String(text.prefix(max(columns - 1, 1)))
  }
}
