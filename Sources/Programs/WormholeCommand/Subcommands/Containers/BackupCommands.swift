import Wormhole
import WormholeInspection
import WormholePeers
import WormholeSystem

extension CommandDescription {
  static let backup = CommandDescription(
    name: "backup",
    abstract: "Write the container into one file, as it was at one moment, while it is in use.",
    discussion: """
      The file is a tar archive: 'tar -tf FILE' lists it, and 'restore' makes a container of it again. It \
      has what 'copy' copies: messages, defaults, queues with their files, receipts and failures, logs, and \
      what the group keeps beside them, without extended attributes. It leaves out what is tied to \
      processes that run now, and how peers are launched.

      The file gets its name when it is whole, and replaces an older one then; with '-', the archive is \
      written to standard output. While processes change the container faster than it can be read, their \
      changes wait for a moment. Meanwhile a copy of the container is beside the file, or in TMPDIR for \
      '-', in a directory whose name begins with .wormhole-backup-; one that a killed program left \
      can be removed.
      """,
    positionals: [
      PositionalDescription(
        name: "archive", help: "The file to write; with '-', standard output is written.",
        kind: .file)
    ],
    options: [
      .value(
        "timeout", "seconds", .seconds,
        help: "How long it may take; by default as long as it needs."),
      .json,
    ]
  ) { arguments, environment in
    let file = arguments.requiredText("archive")
    guard let container = try arguments.container.openExisting() else {
      throw CommandError(
        verb: "back up", object: try arguments.container.path(), reason: "it is no container yet",
        status: .no)
    }
    if file == "-", environment.isTerminal {
      throw CommandError(
        verb: "write", object: "the archive", reason: "standard output is a terminal; name a file",
        status: .usage)
    }
    var backup = ContainerBackup(of: container)
    backup.leavesOut = { PeerNames.isLaunch($0) }
    // A reader of standard output that is stopped would keep this process from ending.
    let interruption = file == "-" ? nil : try Interruption()
    let show = environment.partsProgress
    backup.progress = { parts, bytes in
      try interruption?.endIfTold()
      show(parts, bytes)
    }
    defer { environment.showProgress(nil) }
    let deadline = arguments.deadline()
    let done: ContainerBackup.Summary
    if file == "-" {
      done = try backup.run(stagedIn: environment.temporaryDirectory, until: deadline) {
        try environment.print($0)
      }
    } else {
      let place = try CommandLinePath.absolute(file, to: "write")
      done = try NewFile.write(place) { output in
        try backup.run(stagedIn: NewFile.directory(of: place), until: deadline, to: output)
      }
    }
    environment.showProgress(nil)
    if arguments.has("json"), file != "-" {
      try environment.print(json: .object(["members": done.members, "bytes": done.bytes]))
    } else {
      environment.tell("wrote \(done.bytes) bytes, \(done.members) members")
    }
  }

  static let restore = CommandDescription(
    name: "restore",
    abstract: "Make a container of a file that 'backup' wrote: complete, or not at all.",
    discussion: """
      The container is the one that --group, --container or the environment names; it must not exist yet, \
      or be an empty directory. It is made beside its name, and gets the name when all of it is on the \
      disk. On etcd there must be no container at the prefix; logs need a directory.

      A file that is damaged, or not whole, is refused with exit status 65, and nothing is made. Meanwhile \
      a copy is in a directory whose name begins with .wormhole-restore-, beside the container, or in TMPDIR \
      for a container on etcd; one that a killed program left can be \
      removed.
      """,
    positionals: [
      PositionalDescription(
        name: "archive", help: "The file to read; with '-', standard input is read.", kind: .file)
    ],
    options: [
      .value(
        "timeout", "seconds", .seconds, standard: "60",
        help: "How long etcd is waited for; the work itself may take longer."),
      .json,
    ]
  ) { arguments, environment in
    let file = arguments.requiredText("archive")
    let (place, group) = try arguments.container.place()
    let interruption = try Interruption()
    let input = file == "-" ? nil : SharedDescriptor(try NewFile.open(file))
    let done = try ContainerBackup.restore(
      file == "-" ? "standard input" : file, to: place, group: group,
      stagedIn: environment.temporaryDirectory, until: arguments.deadline(standard: .seconds(60))
    ) { maximum in
      let descriptor = input?.descriptor.rawValue ?? 0
      try interruption.wait(forInputOf: descriptor)
      do throws(Errno) {
        return try Program.read(from: descriptor, maximumBytes: min(maximum, 256 << 10))
      } catch {
        throw CommandError(verb: "read", object: file, reason: "\(error)", status: .inputOutput)
      }
    }
    if arguments.has("json") {
      try environment.print(
        json: .object(["parts": done.keys, "bytes": done.bytes, "files": done.items]))
    } else {
      environment.tell("restored \(done.keys) parts, \(done.bytes) bytes")
    }
  }
}

/// A file that gets its name when it is whole.
private enum NewFile {
  static func directory(of file: String) -> String {
    let slash = file.lastIndex(of: "/") ?? file.startIndex
    return slash == file.startIndex ? "/" : String(file[..<slash])
  }

  static func open(_ file: String) throws -> FileDescriptor {
    do throws(Errno) {
      return try .open(file, .readOnly)
    } catch {
      throw CommandError(verb: "read", object: file, reason: "\(error)", status: .inputOutput)
    }
  }

  /// - Parameters:
  ///   - file: An absolute path.
  ///   - body: Gets the function that writes.
  static func write<Result>(
    _ file: String, _ body: (@escaping ([UInt8]) throws -> Void) throws -> Result
  ) throws -> Result {
    func reporting<Value>(_ call: () throws -> Value) throws -> Value {
      do {
        return try call()
      } catch let error as Errno {
        throw CommandError(verb: "write", object: file, reason: "\(error)", status: .inputOutput)
      }
    }
    let partial = "\(file).partial-" + String(UInt64.random(in: .min ... .max), radix: 16)
    let output = try reporting {
      SharedDescriptor(try FileDescriptor.open(partial, [.writeOnly, .create, .exclusive]))
    }
    var isDone = false
    defer { if !isDone { removePartial(partial) } }
    let result = try body { bytes in try reporting { try output.descriptor.writeAll(bytes) } }
    try reporting {
      try output.descriptor.synchronize()
      try rename(partial, at: Directory.current, to: file, at: Directory.current)
      isDone = true
      try FileDescriptor.open(directory(of: file), [.readOnly, .directory]).synchronize()
    }
    return result
  }

  private static func removePartial(_ file: String) {
    // The failure of the work is what has to be told; the name says what the file is.
    try? removeFile(file)
  }
}

extension CommandEnvironment {
  fileprivate var temporaryDirectory: String {
    variable("TMPDIR").flatMap { $0.isEmpty ? nil : $0 } ?? "/tmp"
  }
}
