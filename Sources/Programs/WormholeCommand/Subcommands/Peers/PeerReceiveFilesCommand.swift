import AppGroup
import FoundationEssentials
import PeerConnectivity
import PropertyLists
import SystemCalls

struct PeerReceiveFilesCommand: Subcommand {
  static let description = CommandDescription(
    name: "receive-files",
    abstract: "Put the files for a peer into a directory, and print one line for each.",
    discussion: """
      A line is {"id": ..., "metadata": ..., "name": ..., "path": ..., "redelivery": ..., \
      "sender": ..., "size": ...}; "name" is the file's name at its sender, and "path" its path now. \
      No file is overwritten, and no name leads out of the directory: the second a.txt becomes \
      a-2.txt, and characters that could mislead a shell become '_'. A file is processed when its line \
      is written; "redelivery" is true for a file that was delivered before.

      Only one process receives for a name: this one waits up to 10 seconds for another one to end, and \
      replaces one that is stopped. It prints 'listening' on standard error once it receives.
      """,
    positionals: [.ownName],
    options: [
      .value("into", "directory", .directory, help: "The directory for the files; it must exist."),
      .count, .timeout,
    ],
    problem: { $0.text("into") == nil ? "missing expected option '--into <directory>'" : nil })

  static let commandPath = ["peer", "receive-files"]

  func run(_ arguments: ParsedArguments, _ environment: CommandEnvironment) throws -> ExitStatus {
    let deadline = arguments.deadline()
    let directory = try ReceivingDirectory(arguments.requiredText("into"))
    let session = try PeerSession(
      arguments.requiredText("name"), in: arguments.container.open())
    let interruption = try Interruption(endsWithReader: true)
    let found = try interruption.wait {
      try session.receiveFiles(until: min(deadline, .now + .seconds(10)))
    }
    guard let receiver = found else { return .no }
    defer { receiver.close() }
    environment.tellListening(endsWithReader: false)
    return try ReceiveLoop(count: arguments.count("count"), interruption: interruption).run {
      try receiver.next(until: deadline)
    } handle: { file in
      let path = try directory.put(file)
      try environment.print(line: JSONWriter.string(file.propertyList(path: path)))
      try file.acknowledge()
      return .done
    }
  }
}

extension PeerFile {
  /// Keys are only ever added.
  fileprivate func propertyList(path: String) -> PropertyListValue {
    .object([
      "id": .string(id), "metadata": metadata, "name": .string(name), "path": .string(path),
      "redelivery": .boolean(isRedelivery), "sender": .string(sender), "size": .integer(size),
    ])
  }
}
