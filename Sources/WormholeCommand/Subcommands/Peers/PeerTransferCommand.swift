import AppGroup
import FoundationEssentials
import PeerConnectivity
import PropertyLists

struct PeerTransferCommand: Subcommand {
  static let description = CommandDescription(
    name: "transfer",
    abstract: "Hand over a file that is delivered whenever the peer receives.",
    discussion: """
      The command returns when the content is safe in the container, and prints the transfer's id, \
      for 'peer cancel'; a bar shows how far it is where standard error is a terminal. Interrupted \
      before, it takes the transfer back. Metadata is any JSON value, for the receiver.
      """,
    positionals: [
      .peer,
      PositionalDescription(name: "file", help: "A regular file.", kind: .file),
    ],
    options: [
      .value("metadata", "json", .text, help: "What the receiver is told with the file."),
      .flag(
        "move",
        help: "Hand over the file itself: at once on the same file system, and it is gone here."),
      .from, .durable("it"), .expires, .wait, .timeout,
    ],
    problem: ParsedArguments.waitProblem)

  static let commandPath = ["peer", "transfer"]

  func run(_ arguments: ParsedArguments, _ environment: CommandEnvironment) throws -> ExitStatus {
    let deadline = arguments.deadline()
    let file = arguments.requiredText("file")
    let metadata = try arguments.text("metadata").map {
      try Message.read(Array($0.utf8), source: "the metadata")
    }
    let session = try arguments.openSession(environment)
    let interruption = try Interruption()
    let transfer = try session.transfer(
      fileAt: URL(filePath: WorkingDirectory.absolute(file, to: "transfer")),
      to: arguments.requiredText("peer"), metadata: metadata,
      options: PeerFileOptions(
        isMoved: arguments.has("move"),
        durability: arguments.durability,
        expiry: arguments.seconds("expires")))
    defer { session.finishCopying(until: .now + .seconds(5)) }
    try store(transfer, file, interruption, environment)
    try environment.print(line: transfer.id)
    guard arguments.text("wait") != nil else { return .done }
    guard let status = try interruption.wait(for: { try await transfer.end(until: deadline) })
    else { return .no }
    // Its end is told now.
    if status.isEnd { try transfer.forget() }
    return status.exitStatus(of: file, environment)
  }

  private func store(
    _ transfer: PeerFileTransfer, _ file: String, _ interruption: Interruption,
    _ environment: CommandEnvironment
  ) throws {
    let bar = environment.errorColumns.map {
      ProgressBar(file: file, columns: $0, write: environment.writeStandardError)
    }
    if let bar { transfer.observeProgress { bar.show($0) } }
    defer { bar?.end() }
    let stored: Void?
    do {
      stored = try interruption.wait { try await transfer.stored() }
    } catch {
      // What is stored after all is no failure, and what is not is not sent behind its user's back.
      if try takeBack(transfer, file, after: error) { throw error }
      return
    }
    guard stored == nil else { return }
    let isCancelled = try transfer.cancel()
    throw CommandError(
      verb: "transfer", object: file,
      reason: isCancelled
        ? "interrupted; it is taken back" : "interrupted, but it was taken already",
      status: .no)
  }

  /// - Returns: whether it is not sent; false when it is stored, or was received already.
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
        reason: "\(error); nor can it be taken back now: \(second). 'wormhole peer outstanding "
          + "\(transfer.sender)' tells what becomes of it, and 'wormhole peer cancel \(transfer.id)' "
          + "takes it back", status: .inputOutput)
    }
  }
}
