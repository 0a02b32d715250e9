import SystemCalls

/// Finds a program as a shell does.
struct ProgramLookup {
  /// The directories of PATH, separated by colons.
  let path: String

  /// - Throws: `CommandError` for a program that is not there, or may not be run.
  func absolute(_ program: String) throws -> String {
    if program.contains("/") {
      let file = try WorkingDirectory.absolute(program, to: "register")
      if Self.isProgram(file) { return file }
      throw refusal(program, "there is no such program, or it may not be run")
    }
    for directory in path.split(separator: ":") {
      let file = try WorkingDirectory.absolute("\(directory)/\(program)", to: "register")
      if Self.isProgram(file) { return file }
    }
    throw refusal(program, "there is no such program in PATH")
  }

  private static func isProgram(_ file: String) -> Bool {
    do throws(Errno) {
      // Many are links.
      let status = try FileDescriptor.open(file, .pathOnly).status()
      return status.kind == .regular && status.permissions & 0o111 != 0
    } catch {
      // What cannot be looked at cannot be run.
      return false
    }
  }

  private func refusal(_ program: String, _ reason: String) -> CommandError {
    CommandError(verb: "register", object: program, reason: reason, status: .no)
  }
}
