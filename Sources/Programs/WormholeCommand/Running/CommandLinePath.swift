import WormholeSystem

/// Paths as a command line gives them.
enum CommandLinePath {
  /// A path that stays valid for a process in another directory.
  ///
  /// - Parameter verb: the verb of the error's sentence.
  static func absolute(_ file: String, to verb: String) throws -> String {
    guard !file.hasPrefix("/") else { return file }
    let directory = try reporting(cannot: "find the current directory, to \(verb) \(file)") {
      () throws(Errno) in try linkTarget("/proc/self/cwd")
    }
    return directory == "/" ? "/" + file : directory + "/" + file
  }

  /// Finds a program as a shell does.
  ///
  /// - Parameter searchPath: the directories of PATH, separated by colons.
  /// - Throws: `CommandError` for a program that does not exist or may not be run.
  static func program(_ name: String, searchPath: String) throws -> String {
    let isPath = name.contains("/")
    for directory in isPath ? [""] : searchPath.split(separator: ":").map({ "\($0)/" }) {
      let file = try absolute(directory + name, to: "register")
      // Many programs are links, so the link is followed. A file that cannot be examined cannot be run.
      if let status = try? fileStatus(file, followingLinks: true), status.kind == .regular,
        status.permissions & 0o111 != 0
      {
        return file
      }
    }
    throw CommandError.no(
      "register \(name)",
      because: isPath
        ? "there is no such program, or it may not be run" : "there is no such program in PATH")
  }
}
