import AppGroup

extension ContainerSelection {
  /// Opens the container; that of a group is made where it is missing.
  ///
  /// - Throws: `AppGroupError` with its remedy.
  func open() throws -> SharedContainer {
    switch self {
    case .group(let group): try SharedContainer(group: group)
    case .directory(let directory): try SharedContainer(path: directory)
    }
  }

  /// The options that name this container again, quoted for a shell.
  var options: String {
    switch self {
    case .group(let group): "--group \(group.quotedForShell)"
    case .directory(let directory): "--container \(directory.quotedForShell)"
    }
  }
}

extension String {
  /// The text as one word of a shell's command line.
  var quotedForShell: String {
    let isPlain = utf8.allSatisfy { byte in
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"):
        true
      default: "-_./:@%+=,".utf8.contains(byte)
      }
    }
    if isPlain, !isEmpty { return self }
    return "'" + split(separator: "'", omittingEmptySubsequences: false).joined(separator: "'\\''")
      + "'"
  }
}

extension ContainerSelection {
  /// Where the container is, or would be.
  func path() throws -> String {
    switch self {
    case .group(let group): try SharedContainer.path(ofGroup: group)
    case .directory(let directory): directory
    }
  }

  /// Opens the container without making anything.
  ///
  /// - Returns: nil for a directory that is no container yet.
  /// - Throws: `AppGroupError` with its remedy; `CommandError` for a group whose container nobody
  ///   has made.
  func openExisting() throws -> SharedContainer? {
    switch self {
    case .group(let group):
      let path = try SharedContainer.path(ofGroup: group)
      do {
        return try SharedContainer.existing(path: path, group: group)
      } catch let error as AppGroupError where error.code == .containerMissing {
        throw CommandError(
          verb: "open", object: "the container of group \(group.quoted) (\(path))",
          reason: "there is none yet; the first message makes it", status: .inputOutput)
      }
    case .directory(let directory): return try SharedContainer.existing(path: directory)
    }
  }
}
