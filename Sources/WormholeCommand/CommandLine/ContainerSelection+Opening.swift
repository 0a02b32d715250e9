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
