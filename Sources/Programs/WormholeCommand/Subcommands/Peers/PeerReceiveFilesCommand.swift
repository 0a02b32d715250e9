import FoundationEssentials
import Wormhole
import WormholePeers
import WormholePropertyLists
import WormholeSystem

extension CommandDescription {
  static let peerReceiveFiles = CommandDescription(
    name: "receive-files",
    abstract: "Put the files for a peer into a directory, and print one line for each.",
    discussion: """
      A line is {"id": ..., "metadata": ..., "name": ..., "path": ..., "redelivery": ..., \
      "sender": ..., "size": ...}; "name" is the file's name at its sender, and "path" its path now. \
      No file is overwritten, and no name leads out of the directory: the second a.txt becomes \
      a-2.txt, and characters that could mislead a shell become '_'. A file is processed when its line \
      is written; "redelivery" is true for a file that was delivered before.

      Only one process receives for a name: this one waits up to 10 seconds for another one to end, and \
      replaces one that is stopped. It prints 'listening' on standard error once it receives. A name to \
      which nothing was ever sent is removed again at the end.
      """,
    positionals: [.ownName],
    options: [
      .value("into", "directory", .directory, help: "The directory for the files; it must exist."),
      .count, .timeout, .readyDescriptor,
    ]
  ) { arguments, environment in
    let deadline = arguments.deadline()
    let directory = try ReceivingDirectory(arguments.requiredText("into"))
    let session = try PeerSession(arguments.requiredText("name"), in: arguments.container.open())
    let interruption = try Interruption(endsWithReader: true)
    try session.leavingNoFileName { hasReceived in
      let found = try interruption.wait {
        try session.receiveFiles(until: min(deadline, .now + .seconds(10)))
      }
      guard let receiver = found else { throw ExitStatus.no }
      defer { receiver.close() }
      environment.tellListening(endsWithReader: false)
      try arguments.handleEach(of: receiver.next, until: deadline, interruption) { file in
        hasReceived = true
        let path = try directory.put(file)
        try environment.print(json: file.propertyList(path: path))
        try file.acknowledge()
        return .done
      }
    }
  }
  .refusing { $0.text("into") == nil ? "missing expected option '--into <directory>'" : nil }
}

extension PeerFile {
  /// Keys are only ever added.
  fileprivate func propertyList(path: String) -> PropertyListValue {
    .object([
      "id": id, "metadata": metadata, "name": name, "path": path, "redelivery": isRedelivery,
      "sender": sender, "size": size,
    ])
  }
}

/// The directory of received files, which get names that are safe and not in use.
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
    do throws(Errno) {
      guard try fileStatus(path + "/.").kind == .directory else { throw .notDirectory }
    } catch {
      throw CommandError(
        verb: "put files into", object: directory, reason: "\(error)",
        status: error == .accessDenied ? .permission : .inputOutput)
    }
  }

  /// Moves a file into the directory.
  ///
  /// - Returns: its path.
  func put(_ file: PeerFile) throws -> String {
    let destination = try reserve(Self.safe(file.name))
    do {
      try file.claim(to: URL(filePath: destination))
    } catch {
      // Otherwise an empty file stays; the error that is thrown explains why it has no content.
      try? removeFile(destination)
      throw error
    }
    return destination
  }

  /// Takes a name with an empty file, which the content then replaces: a receiver at the same time gets
  /// another name.
  func reserve(_ name: String) throws -> String {
    let parts = Self.split(name)
    for number in 1...Self.maximumCopies {
      let candidate = number == 1 ? name : "\(parts.stem)-\(number)\(parts.suffix)"
      do throws(Errno) {
        _ = try FileDescriptor.open(
          path + "/" + candidate, [.writeOnly, .create, .exclusive, .noFollow])
        return path + "/" + candidate
      } catch {
        guard error == .alreadyExists else {
          throw CommandError(
            verb: "make", object: path + "/" + candidate, reason: "\(error)",
            status: error == .accessDenied ? .permission : .inputOutput)
        }
      }
    }
    throw CommandError(
      verb: "make", object: path + "/" + name,
      reason: "there are \(Self.maximumCopies) files of this name", status: .inputOutput)
  }

  /// A name that is one component of a path, not hidden, and not taken for an option.
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
