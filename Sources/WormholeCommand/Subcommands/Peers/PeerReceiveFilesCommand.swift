import AppGroup
import FoundationEssentials
import PeerConnectivity
import PropertyLists
import SystemCalls

struct PeerReceiveFilesCommand: Subcommand {
  static let description = CommandDescription(
    name: "receive-files",
    abstract: "Put the files for a peer into a directory, and print a line for each.",
    discussion: """
      A line is {"id": ..., "metadata": ..., "name": ..., "path": ..., "redelivery": ..., \
      "sender": ..., "size": ...}; "name" is what the file is called at its sender, and "path" \
      where it is now. No file is ever overwritten, and no name leads out of the directory: the \
      second a.txt becomes a-2.txt, and what could mislead a shell becomes '_'. A file is processed \
      when its line is written; one that was delivered before has "redelivery": true.

      One process receives for a name at a time: another is waited for up to 10 seconds, and one \
      that is stopped is replaced. The command says 'listening' on standard error once it receives.
      """,
    positionals: [.ownName],
    options: [
      .value("into", "directory", .directory, help: "Where the files are put; it must exist."),
      .count, .timeout,
    ],
    problem: { $0.text("into") == nil ? "missing expected option '--into <directory>'" : nil })

  static let commandPath = ["peer", "receive-files"]

  func run(_ arguments: ParsedArguments, _ environment: CommandEnvironment) throws -> ExitStatus {
    let deadline = arguments.deadline()
    let directory = try ReceivingDirectory(arguments.requiredText("into"))
    let session = try PeerSession(
      arguments.container.open(), name: arguments.requiredText("name"))
    let interruption = try Interruption(endsWithReader: true)
    let found = try interruption.wait {
      try session.receiveFiles(until: min(deadline, .now + .seconds(10)))
    }
    guard let receiver = found else { return .no }
    defer { receiver.end() }
    environment.tellListening(endsWithReader: false)
    return try Taking(count: arguments.count("count"), interruption: interruption).each {
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
