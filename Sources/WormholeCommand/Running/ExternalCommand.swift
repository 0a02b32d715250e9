import SystemCalls

/// Another program's command line, given after `--`.
struct ExternalCommand: Sendable {
  let words: [String]

  struct Outcome {
    let termination: Termination
    /// What it printed, where that was asked for.
    let output: [UInt8]
  }

  /// Starts the program.
  ///
  /// - Parameters:
  ///   - variables: added to the environment, as "NAME=value".
  ///   - inherited: what it has open as descriptor 10.
  ///   - endsWithParent: whether it is killed when this process is; the calling thread must be the main
  ///     one then.
  func start(
    variables: [String], input: Int32 = 0, output: Int32 = 1, inheriting inherited: Int32? = nil,
    endsWithParent: Bool = true
  ) throws(Errno) -> ChildProcess {
    try ChildProcess(
      words[0], Array(words.dropFirst()), environment: Program.environment(with: variables),
      input: input, output: output, inheriting: inherited, endsWithParent: endsWithParent)
  }

  /// Runs the program to its end; it ends with this process.
  ///
  /// - Parameters:
  ///   - input: its standard input, from a file in memory: it may be longer than a pipe holds, and
  ///     the program need not read it.
  ///   - variables: added to the environment, as "NAME=value".
  ///   - collectsOutput: whether its standard output is handed back; otherwise it is ours.
  /// - Throws: `CommandError` when it cannot be started.
  func run(
    input: [UInt8], variables: [String] = [], collectsOutput: Bool = false
  ) throws -> Outcome {
    do throws(Errno) {
      let standardInput = try FileDescriptor.memoryFile(name: "message", content: input)
      guard collectsOutput else {
        let child = try start(variables: variables, input: standardInput.rawValue)
        return Outcome(termination: try child.waitForEnd(), output: [])
      }
      let pipe = try makePipe()
      let child = try start(
        variables: variables, input: standardInput.rawValue, output: pipe.write.rawValue)
      let output = try pipe.takeRead().descriptor.readToEnd(
        expectedBytes: 0, maximumBytes: Message.maximumTextBytes)
      return Outcome(termination: try child.waitForEnd(), output: output)
    } catch {
      throw self.error(error)
    }
  }

  /// It could not be started; the exit status is what a shell's is.
  func error(_ error: Errno) -> CommandError {
    let status: ExitStatus =
      switch error {
      case .noSuchFile, .notDirectory: .commandNotFound
      case .accessDenied, .notPermitted, .notAProgram: .commandNotExecutable
      default: .inputOutput
      }
    return CommandError(verb: "run", object: words[0], reason: "\(error)", status: status)
  }

  /// What went wrong; nil when the program ended with status 0.
  func failure(_ termination: Termination) -> String? {
    switch termination {
    case .exited(0): nil
    case .exited(let status): "\(words[0]) ended with status \(status)"
    case .killed(let signal): "\(words[0]) was killed by signal \(signal)"
    }
  }
}

extension ChildProcess {
  /// The end of a program whose time is its user's business.
  fileprivate func waitForEnd() throws(Errno) -> Termination {
    while true {
      if let termination = try wait(until: .now + .seconds(3_600)) { return termination }
    }
  }
}
