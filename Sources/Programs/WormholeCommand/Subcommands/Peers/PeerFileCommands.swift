import FoundationEssentials
import Synchronization
import Wormhole
import WormholePeers
import WormholePropertyLists
import WormholeSystem
import WormholeTerminals

extension ParsedArguments {
  /// Queues the file that `--file` names.
  func sendFile(_ file: String, _ environment: CommandEnvironment) throws {
    // Each piece of a file has the time of a call.
    try transfer(file, limited(until: nil), environment)
  }

  /// Puts the files for a peer into the directory that `--files` names.
  func receiveFiles(into place: String, _ environment: CommandEnvironment) throws {
    let deadline = deadline()
    let directory = try ReceivingDirectory(place)
    let name = requiredText("name")
    let first = Prefetch.queue(PeerNames.files(name), isOwn: true)
    let session = try PeerSession(name, in: container.open(first))
    let interruption = try Interruption(endsWithReader: tail == nil)
    try session.leavingNoName(forFiles: true) { hasReceived in
      let found = try noticingUse {
        try interruption.wait {
          try session.receiveFiles(until: min(deadline, .now + .seconds(10)))
        }
      }
      guard let receiver = found else { throw ExitStatus.no }
      defer { receiver.close() }
      environment.reportListening(endsWithReader: false)
      try handleEach(of: receiver.next, until: deadline, interruption) { file in
        hasReceived = true
        let path = try directory.put(file)
        let line: JSONObject = [
          "id": file.id, "metadata": file.metadata, "name": file.name, "path": path,
          "redelivery": file.isRedelivery, "sender": file.sender, "size": file.size,
        ]
        let status = try hand(
          line, titled: path.quoted, environment,
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

private func transfer(
  _ file: String, _ arguments: ParsedArguments, _ environment: CommandEnvironment
) throws {
  let deadline = arguments.deadline()
  let metadata =
    arguments.text("value") == nil ? nil : try arguments.operandValue(environment, "the metadata")
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
      // The lock ensures that no last report from another thread comes after the line is cleared.
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

/// - Returns: whether the transfer is cancelled; false if it is stored, or was already received.
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

/// The directory of received files, which get names that are safe and unused.
struct ReceivingDirectory {
  /// Absolute.
  private let path: String

  /// The largest number of files with one name.
  private static let maximumCopies = 100_000
  /// Leaves room for a number within the 255 bytes of a file system.
  private static let maximumNameBytes = 200

  /// - Throws: `CommandError` for anything but a directory.
  init(_ directory: String) throws {
    path = try CommandLinePath.absolute(directory, to: "put files into")
    // Even through a link; fails for anything but a directory.
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

  /// The paths that a file with a name may have, in order.
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
