import SystemCalls

extension CommandEnvironment {
  /// That of this process.
  static var process: CommandEnvironment {
    CommandEnvironment(
      variable: { Program.environment($0) },
      readStandardInput: readToEnd,
      writeStandardOutput: { try Program.write($0, to: 1) },
      writeStandardError: writeToPeople,
      endWithReader: endWithReader,
      columns: Program.terminalColumns(1) ?? 80,
      isTerminal: Program.isTerminal(1), isInputTerminal: Program.isTerminal(0),
      errorColumns: Program.terminalColumns(2),
      answers: AnswerWatch { Program.exit($0.rawValue) })
  }

  @Sendable private static func readToEnd() throws -> [UInt8] {
    var all: [UInt8] = []
    while true {
      let chunk = try Program.read(from: 0, maximumBytes: 64 << 10)
      if chunk.isEmpty { return all }
      all += chunk
      // An endless input (/dev/zero, a wrong pipe) must not fill the memory.
      guard all.count <= Message.maximumTextBytes else { throw Errno.fileTooLarge }
    }
  }

  @Sendable private static func endWithReader() {
    do {
      try Program.endWithReader()
    } catch {
      // Without a thread for it, the next line finds out.
    }
  }

  @Sendable private static func writeToPeople(_ bytes: [UInt8]) {
    do {
      try Program.write(bytes, to: 2)
    } catch {
      // A closed standard error leaves no place to say so; the exit status still tells.
    }
  }
}
