import Wormhole
import WormholeInspection
import WormholePeers
import WormholeSystem

extension CommandDescription {
  static let copy = CommandDescription(
    name: "copy",
    abstract: "Copy the container to another place, a directory or etcd: all of it, or nothing.",
    discussion: """
      Values, defaults, queues with their files, receipts and failures, logs, and what the group keeps \
      beside them are copied. Not copied is what is tied to processes that run now, and how peers are \
      launched, which is to be registered again. What is delivered at this moment is delivered again \
      there, marked. The original stays as it is. What cannot be read, such as a link in place of a name, \
      is left out and named at the end, and the exit status is 65. Members of a Unix group \
      share the copy if they share the empty directory (mode 2770) whose place it takes.

      A process that goes on with the original would change it without changing the copy. So while one \
      is present in the container, the copy is refused with its name, unless --in-use is given; then \
      the copy is as the container was at one moment. While processes change it faster than it can be \
      read, their changes wait for a moment. Processes that only read and write values are not seen.

      A directory gets its name when the copy is whole. One that a killed program left has .copying- after \
      that name, and can be removed.
      """,
    arguments: [
      .operand(
        "place", .directory,
        help: "A directory that does not exist or is empty, or 'etcd://host/prefix'."),
      .flag("in-use", help: "Copy although processes use the container."),
      .value("timeout", .duration, help: "How long it may take; by default as long as it needs."),
      .json,
    ]
  ) { arguments, environment in
    let place = arguments.requiredText("place")
    let container = try arguments.container.openExisting(to: "copy")
    var copy = ContainerCopy(of: container)
    copy.allowsUse = arguments.has("in-use")
    copy.leavesOut = { PeerNames.isLaunch($0) }
    copy.progress = environment.partsProgress
    let interruption = try Interruption()
    copy.check = { try interruption.endIfInterrupted() }
    defer { environment.showProgress(nil) }
    let done: ContainerCopy.Summary
    do {
      done = try copy.run(to: place, until: arguments.deadline())
    } catch let error as WormholeError
      where error.code == .timedOut && error.holder != nil && !copy.allowsUse
    {
      throw CommandError(
        cannot: "copy \(container.location)",
        because: "\(error.reason); end it first, or give --in-use",
        status: .inUse)
    }
    let target = Engines.withoutPassword(place)
    try environment.end(done, arguments, text: "copied \(done.counted) to \(target)")
  }

  static let backup = CommandDescription(
    name: "backup",
    abstract: "Write the container into one file, as it was at one moment, while it is in use.",
    discussion: """
      The file is made by tar(1) and gzip(1), which have to be installed: 'tar -tf FILE' lists it, and \
      'restore' makes a container of it again. It has what 'copy' copies: values, defaults, queues with \
      their files, receipts and failures, logs, and the files that the group keeps beside them, without \
      extended attributes and the setuid and setgid bits of files. It leaves out what is tied to processes \
      that run now, and how peers are launched. Links and FIFOs that the group keeps there are left out, \
      and so is what cannot be read; these are named at the end, and the exit status is 65.

      The file gets its name when it is whole and on the disk, and replaces an older one then; with '-', \
      the archive is written to standard output. While processes change the container faster than it can \
      be read, their changes wait for a moment. Meanwhile a copy of the container is beside the file, or in \
      TMPDIR for '-', in a directory whose name begins with .wormhole-backup-, and the file has .partial- \
      after its name. What a killed program left of these can be removed.
      """,
    arguments: [
      .operand("archive", .file, help: "The file to write; with '-', standard output is written."),
      .value("timeout", .duration, help: "How long it may take; by default as long as it needs."),
      .json,
    ]
  ) { arguments, environment in
    let file = arguments.requiredText("archive")
    let container = try arguments.container.openExisting(to: "back up")
    if file == "-", environment.isTerminal {
      throw CommandError(
        cannot: "write the archive", because: "standard output is a terminal; name a file",
        status: .usage)
    }
    var backup = ContainerBackup(of: container)
    backup.copy.leavesOut = { PeerNames.isLaunch($0) }
    backup.copy.progress = environment.partsProgress
    defer { environment.showProgress(nil) }
    let deadline = arguments.deadline()
    func run(_ name: String, _ output: Int32, in directory: String?) throws -> ContainerCopy.Summary
    {
      // Not before: opening a pipe may have to wait for its reader.
      let interruption = try Interruption()
      backup.copy.check = { try interruption.endIfInterrupted() }
      return try backup.run(
        name, to: output, stagedIn: directory ?? environment.temporaryDirectory, until: deadline)
    }
    guard file == "-" else {
      let done = try NewFile.write(CommandLinePath.absolute(file, to: "write")) {
        try run(file, $0, in: $1)
      }
      return try environment.end(done, arguments, text: "backed up \(done.counted)")
    }
    let done: ContainerCopy.Summary
    do {
      done = try run("standard output", 1, in: nil)
    } catch let error as WormholeError where error.errorNumber == Errno.brokenPipe.rawValue {
      throw ExitStatus.brokenPipe
    }
    environment.showProgress(nil)
    environment.report("backed up \(done.counted)\(done.faults.counted)")
    try environment.end(done.faults)
  }

  static let restore = CommandDescription(
    name: "restore",
    abstract: "Recreate a container from a backup: all of it, or nothing.",
    discussion: """
      The container is the one that --group, --container or the environment names; it must not exist yet, \
      or be an empty directory; members of a Unix group share it if they share that directory (mode 2770). \
      It is made beside its name, and gets the name when all of it is on the disk. On etcd there must be no \
      container at the prefix.

      A file that is damaged, or not whole, or has anything but directories and files, is refused with exit \
      status 65, and nothing is made. It needs tar(1) and gzip(1), and room for all of its files. Meanwhile \
      a copy is in a directory whose name begins with .wormhole-restore-, beside the container, or in TMPDIR \
      for a container on etcd, and the container has .copying- after its name. What a killed program left \
      of these can be removed.
      """,
    arguments: [
      .operand("archive", .file, help: "The file to read; with '-', standard input is read."),
      .value(
        "timeout", .duration, standard: "60",
        help: "How long etcd is waited for; the work itself may take longer."),
      .json,
    ]
  ) { arguments, environment in
    let file = arguments.requiredText("archive")
    let (place, group) = try arguments.container.place()
    let input =
      file == "-"
      ? nil
      : try reporting(
        cannot: "read \(file)", SharedDescriptor(FileDescriptor.open(file, .readOnly)))
    // Not before: opening a pipe may have to wait for its writer.
    let interruption = try Interruption()
    let done = try withExtendedLifetime(input) {
      try ContainerBackup.restore(
        file == "-" ? "standard input" : file, from: input?.descriptor.rawValue ?? 0, to: place,
        group: group, stagedIn: environment.temporaryDirectory, until: arguments.deadline(),
        check: { try interruption.endIfInterrupted() })
    }
    try environment.end(done, arguments, text: "restored \(done.counted)")
  }

  static let destroy = CommandDescription(
    name: "destroy",
    abstract: "Remove the container with everything in it.",
    discussion: """
      Values, defaults, queues, logs and all else that the package keeps are removed and cannot be \
      brought back; 'copy' makes a copy before. The files that programs keep in the directory beside that \
      stay, unless --with-files is given. A directory that belongs to a group is removed if nothing is left in \
      it. On etcd all keys below the prefix are removed, and this machine's directory of the container, \
      but not those of other machines.

      At a terminal the command asks first; elsewhere it needs --yes. While a process is present in the \
      container, or takes from a queue, the command is refused with its name and exit status 1, unless \
      --in-use is given. Processes that only read and write values are not seen; the next one that \
      writes makes a new container. On etcd that is the next one that begins: a process that has the old \
      one open learns, when it writes, that it was removed.
      """,
    arguments: [
      .yes, .flag("in-use", help: "Remove the container although processes use it."),
      .flag("with-files", help: "Remove also the files that programs keep beside it."),
    ]
  ) { arguments, environment in
    let path = try arguments.container.path()
    let container = try arguments.container.openExisting(to: "destroy")
    try arguments.confirm("Remove \(path) with everything in it?", environment)
    var removal = ContainerRemoval(of: container)
    removal.allowsUse = arguments.has("in-use")
    removal.removesFiles = arguments.has("with-files")
    do {
      let left = try removal.run()
      if !left.isEmpty {
        let names =
          left.prefix(5).map(\.onOneLine).joined(separator: ", ") + (left.count > 5 ? ", ..." : "")
        environment.report("left in \(path), because it is not of the container: \(names)")
      }
    } catch let error as WormholeError where error.code == .timedOut {
      throw CommandError(
        cannot: "destroy \(path)", because: "\(error.reason); end it first, or give --in-use",
        status: .inUse)
    }
  }
}

extension CommandEnvironment {
  /// Shows the progress of a copy to people at a terminal.
  var partsProgress: (_ parts: Int, _ bytes: Int) -> Void {
    { parts, bytes in
      if parts % 100 == 0 { showProgress("\(parts) parts, \(bytes >> 20) MiB") }
    }
  }

  fileprivate func end(
    _ done: ContainerCopy.Summary, _ arguments: ParsedArguments, text sentence: String
  ) throws {
    if arguments.has("json") {
      let leftOut = done.faults.all.isEmpty ? nil : done.faults.all.map(\.path)
      let line: JSONObject = [
        "parts": done.keys, "bytes": done.bytes, "files": done.items, "leftOut": leftOut,
      ]
      try print(json: line)
    } else {
      report(sentence + done.faults.counted)
    }
    try end(done.faults)
  }
}

extension NameFaults {
  /// The end of the sentence that counts what was done.
  fileprivate var counted: String { all.isEmpty ? "" : "; left out: \(all.count), as follows" }
}

/// A file that gets its name when it is complete.
private enum NewFile {
  /// Calls `body` with the file at an absolute path, open for writing, and its directory; a device
  /// or a pipe there is written directly, without a directory.
  static func write<Result>(
    _ file: String, _ body: (_ output: Int32, _ directory: String?) throws -> Result
  ) throws -> Result {
    let action = "write \(file)"
    let existing = try reporting(cannot: action, target(of: file))
    if let existing, existing.kind != .regular {
      let output = try reporting(cannot: action, FileDescriptor.open(file, .writeOnly))
      return try body(output.rawValue, nil)
    }
    let file = existing?.path ?? file
    let partial = "\(file).partial-\(Nonce.next())"
    let output = try reporting(
      cannot: action, FileDescriptor.open(partial, [.writeOnly, .create, .exclusive]))
    var isDone = false
    // The failure of the work is the one to report; the name shows the state of the file.
    defer { if !isDone { try? removeFile(partial) } }
    let result = try body(output.rawValue, parentDirectory(of: file))
    func publish() throws(Errno) {
      try output.synchronize()
      try rename(partial, at: Directory.current, to: file, at: Directory.current)
      isDone = true
      try FileDescriptor.open(parentDirectory(of: file), [.readOnly, .directory]).synchronize()
    }
    try reporting(cannot: action, publish())
    return result
  }

  /// The file to which a name leads, through symbolic links; nil if there is none.
  private static func target(
    of file: String
  ) throws(Errno) -> (path: String, kind: FileStatus.Kind)? {
    guard let status = try ifPresent(fileStatus(file, followingLinks: true)) else { return nil }
    guard status.kind == .regular else { return (file, status.kind) }
    let open = try FileDescriptor.open(file, .pathOnly)
    return (try linkTarget("/proc/self/fd/\(open.rawValue)"), status.kind)
  }
}

extension ContainerCopy.Summary {
  fileprivate var counted: String { "\(keys) \(keys == 1 ? "part" : "parts"), \(bytes) bytes" }
}
