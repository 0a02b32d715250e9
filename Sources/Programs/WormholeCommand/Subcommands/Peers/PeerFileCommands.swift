import FoundationEssentials
import Synchronization
import Wormhole
import WormholePeers
import WormholePropertyLists
import WormholeSystem
import WormholeTerminals

extension CommandDescription {
  static let peerTransfer = CommandDescription(
    name: "transfer",
    abstract: "Queue a file, which is delivered when the peer receives.",
    discussion: """
      The command returns when the content is in the container, and prints the transfer's id, for \
      'peer transfers --remove'. A bar shows the progress where standard error is a terminal. An interruption \
      before that cancels the transfer. Metadata is any JSON value, for the receiver.
      """,
    arguments: [
      .peer, .operand("file", .file, help: "A regular file."),
      .value(
        "metadata", .text, named: "json", help: "A value that the receiver gets with the file."),
      .from, .durable("it"), .expires, .wait, .timeout,
    ]
  ) { arguments, environment in
    // Each piece of a file has the time of a call.
    try transfer(arguments.limited(until: nil), environment)
  }
  .refusing(ParsedArguments.waitProblem)

  static let peerReceiveFiles = CommandDescription(
    name: "receive-files",
    abstract: "Put the files for a peer into a directory, and print one line for each.",
    discussion: """
      A line is {"id": ..., "metadata": ..., "name": ..., "path": ..., "redelivery": ..., \
      "sender": ..., "size": ...}; "name" is the file's name at its sender, and "path" its path now. \
      No file is overwritten, and no name leads out of the directory: the second a.txt becomes \
      a-2.txt, and characters that could mislead a shell become '_'. A file is processed when its line \
      is written, or COMMAND has ended; "redelivery" is true for a file that was delivered before.

      \(eachCommand) Its environment has WORMHOLE_IDENTIFIER, the file's path, WORMHOLE_SENDER and WORMHOLE_TIME.

      Only one process receives for a name: this one waits up to 10 seconds for another one to end, and \
      replaces one that is stopped. It prints 'listening' on standard error once it receives. A name to \
      which nothing was ever sent is removed again at the end.
      """,
    arguments: [
      .ownName,
      .value(
        "into", .directory, isRequired: true, help: "The directory for the files; it must exist."),
      .count, .timeout, .readyDescriptor, .jsonAlways, .command(forEach: "line"),
    ]
  ) { arguments, environment in
    let deadline = arguments.deadline()
    let directory = try ReceivingDirectory(arguments.requiredText("into"))
    let name = arguments.requiredText("name")
    let first = Prefetch.queue(PeerNames.files(name), isOwn: true)
    let session = try PeerSession(name, in: arguments.container.open(first))
    let interruption = try Interruption(endsWithReader: arguments.tail == nil)
    try session.leavingNoName(forFiles: true) { hasReceived in
      let found = try interruption.wait {
        try session.receiveFiles(until: min(deadline, .now + .seconds(10)))
      }
      guard let receiver = found else { throw ExitStatus.no }
      defer { receiver.close() }
      environment.reportListening(endsWithReader: false)
      try arguments.handleEach(of: receiver.next, until: deadline, interruption) { file in
        hasReceived = true
        let path = try directory.put(file)
        let line = try JSONWriter.string(file.propertyList(path: path)) + "\n"
        let status = try arguments.hand(
          Array(line.utf8), titled: path.quoted, environment,
          variables: CommandVariable.common(
            identifier: path, time: file.sent, sender: file.sender),
          (interruption, deadline))
        // One whose command was ended together with this program is delivered again.
        if status != .done, interruption.isRequested { throw status }
        try file.acknowledge()
        return status
      }
    }
  }
}

private func transfer(_ arguments: ParsedArguments, _ environment: CommandEnvironment) throws {
  let deadline = arguments.deadline()
  let file = arguments.requiredText("file")
  let metadata = try arguments.text("metadata").map {
    try JSONInput.read(Array($0.utf8), source: "the metadata")
  }
  // Nothing else would copy the file.
  try ThreadShortage.ruleOut()
  let session = try arguments.openSession(
    environment, sendingTo: PeerNames.outgoingFiles(arguments.sessionName(environment)))
  let interruption = try Interruption()
  let transfer = try session.transfer(
    fileAt: URL(filePath: CommandLinePath.absolute(file, to: "transfer")),
    to: arguments.requiredText("peer"), metadata: metadata,
    options: PeerFileOptions(
      durability: arguments.durability, expiry: arguments.duration("expires"),
      receiptTerm: .dayAfterProcessing))
  defer { session.finishCopying(until: .now + .seconds(5)) }
  try store(transfer, of: file, until: interruption, environment)
  try environment.print(line: transfer.id)
  guard arguments.text("wait") != nil else { return }
  guard let status = try interruption.wait(for: { try await transfer.finalStatus(until: deadline) })
  else { throw ExitStatus.no }
  try status.end(of: file, environment) { try transfer.removeReceipt() }
}

private func store(
  _ transfer: PeerFileTransfer, of file: String, until interruption: Interruption,
  _ environment: CommandEnvironment
) throws {
  let hasEnded = Mutex(false)
  let observation = environment.errorColumns.map { columns in
    let line = ProgressLine(file: file, columns: columns)
    return transfer.observeProgress { progress in
      let text = line.text(completed: progress.completedBytes, total: progress.totalBytes)
      // The lock excludes that a last report from another thread comes after the line was cleared.
      hasEnded.withLock { if !$0 { environment.showProgress(text) } }
    }
  }
  defer {
    observation?.cancel()
    hasEnded.withLock { $0 = true }
    environment.showProgress(nil)
  }
  let stored: Void?
  do {
    stored = try interruption.wait { try await transfer.waitUntilStored() }
  } catch {
    // A file that was stored after all is not a failure; any other must not be sent later.
    if try takeBack(transfer, file, after: error) { throw error }
    return
  }
  guard stored == nil else { return }
  let isCancelled = try transfer.cancel()
  throw CommandError.no(
    "transfer \(file)",
    because: isCancelled
      ? "interrupted; it is cancelled" : "interrupted, but its receiver already has it")
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
      cannot: "transfer \(file)",
      because:
        "\(error); and it may not be cancelled: \(second). '\(ProgramName.called) peer transfers "
        + "\(transfer.sender)' lists its status, and "
        + "'\(ProgramName.called) peer transfers --remove \(transfer.id)' cancels it")
  }
}

struct ProgressLine {
  let file: String
  let columns: Int

  private static let barColumns = 24

  /// `[########----------------]  33 %  12 of 36 MB  film.mov`, cut to the width of the terminal.
  func text(completed: Int64, total: Int64) -> String {
    let fraction = total > 0 ? min(max(Double(completed) / Double(total), 0), 1) : 1
    let full = Int(fraction * Double(Self.barColumns))
    let bar =
      String(repeating: "#", count: full) + String(repeating: "-", count: Self.barColumns - full)
    let percent = "\(Int(fraction * 100))".padded(to: 3, atRight: true)
    let (done, all) = (completed / 1_000_000, total / 1_000_000)
    let text = "[\(bar)] \(percent) %  \(done) of \(all) MB  \(file.onOneLine)"
    // The last column stays empty: some terminals wrap when it is filled.
    return String(text.prefix(max(columns - 1, 1)))
  }
}

extension PeerFile {
  fileprivate func propertyList(path: String) -> PropertyListValue {
    .object([
      "id": id, "metadata": metadata, "name": name, "path": path, "redelivery": isRedelivery,
      "sender": sender, "size": size,
    ])
  }
}

/// The directory of received files, which get names that are safe and unused.
struct ReceivingDirectory {
  /// Absolute.
  private let path: String

  /// The number of files of one name that find a place.
  private static let maximumCopies = 100_000
  /// Leaves room for a number within the 255 bytes of a file system.
  private static let maximumNameBytes = 200

  /// - Throws: `CommandError` for anything but a directory.
  init(_ directory: String) throws {
    path = try CommandLinePath.absolute(directory, to: "put files into")
    // Through a link, too; fails for anything but a directory.
    _ = try reporting(cannot: "put files into \(directory)", fileStatus(path + "/."))
  }

  /// Gives a file the first free name: a simultaneous receiver gets another one.
  func put(_ file: PeerFile) throws -> String {
    let name = Self.safe(file.name)
    if let place = try file.move(toFirstFreeOf: places(for: name)) { return place }
    throw CommandError(
      cannot: "make \(path + "/" + name)",
      because: "there are \(Self.maximumCopies) files of this name")
  }

  /// The paths that a file of a name may have, in order.
  func places(for name: String) -> some Sequence<String> {
    let parts = Self.split(name)
    return (1...Self.maximumCopies).lazy.map { number in
      path + "/" + (number == 1 ? name : "\(parts.stem)-\(number)\(parts.suffix)")
    }
  }

  /// A name that is one component of a path, not hidden, and not mistaken for an option.
  static func safe(_ name: String) -> String {
    var safe = String.UnicodeScalarView()
    for scalar in name.unicodeScalars {
      let isHarmless =
        scalar != "/" && scalar.properties.generalCategory != .control
        && scalar.properties.generalCategory != .format
      safe.append(isHarmless ? scalar : "_")
    }
    var text = String(safe)
    if text.isEmpty || text.hasPrefix(".") || text.hasPrefix("-") { text = "_" + text }
    return shortened(text)
  }

  private static func shortened(_ name: String) -> String {
    var (stem, suffix) = split(name)
    if suffix.utf8.count > maximumNameBytes / 2 { (stem, suffix) = (name, "") }
    while stem.utf8.count + suffix.utf8.count > maximumNameBytes {
      stem.unicodeScalars.removeLast()
    }
    return stem + suffix
  }

  /// `a.tar` and `.gz`.
  private static func split(_ name: String) -> (stem: String, suffix: String) {
    guard let dot = name.lastIndex(of: "."), dot != name.startIndex else { return (name, "") }
    return (String(name[..<dot]), String(name[dot...]))
  }
}
