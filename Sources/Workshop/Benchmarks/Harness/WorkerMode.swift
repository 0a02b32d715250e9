import SystemCalls

/// The other side of `Worker`: the program when it was started as a worker.
enum WorkerMode {
  enum Kind: String {
    /// Increments a value for a while on command; ours and raw.
    case increment
    case rawIncrement = "increment-raw"
    /// Answers each "ping" with a "pong" of the same number; ours, ours in a task, and raw.
    case echo
    case taskEcho = "echo-task"
    case rawEcho = "echo-raw"
    /// Observes many names and reports the cost.
    case observe
    /// Is present until it is killed; ours and raw.
    case present
    case rawPresent = "present-raw"
    /// Answers requests; ours, raw, and over D-Bus.
    case answer
    case rawAnswer = "answer-raw"
    case busAnswer = "answer-bus"
    /// Presents files.
    case presentFiles = "present-files"
  }

  static func run(_ arguments: [String]) throws {
    guard arguments.count >= 2, let kind = Kind(rawValue: arguments[0]) else {
      throw Options.Misuse(description: "a worker is started by the program itself only")
    }
    let directory = arguments[1]
    switch kind {
    case .increment: try UpdateRows.serve(directory, name: arguments[2])
    case .rawIncrement: try UpdateRows.serveRaw(directory, name: arguments[2])
    case .echo: try LatencyRows.echo(directory)
    case .taskEcho: try LatencyRows.echoTask(directory)
    case .rawEcho: try LatencyRows.echoRaw(directory)
    case .observe: try ObserverRows.serve(directory, count: Int(arguments[2]) ?? 0)
    case .present: try PresenceRows.present(directory)
    case .rawPresent: try PresenceRows.presentRaw(directory)
    case .answer: try RequestRows.answer(directory)
    case .rawAnswer: try RequestRows.answerRaw(directory)
    case .busAnswer: try RequestRows.answerOnBus(directory)
    case .presentFiles: try CoordinationRows.present(directory)
    }
  }

  /// Reports that it is ready, then repeats an operation until standard input ends.
  static func repeatUntilEnd(_ operation: () throws -> Void) throws -> Never {
    Output.line("ready")
    // The main thread waits for the other side, so another thread waits for the end.
    try startThread(name: "end of input") {
      while readLine() != nil {}
      Program.exit(0)
    }
    while true { try operation() }
  }

  /// Reports that it is ready, then answers lines until standard input ends.
  static func serve(_ answer: ([Substring]) throws -> String) throws {
    Output.line("ready")
    while let line = readLine() {
      Output.line(try answer(line.split(separator: " ")))
    }
  }
}
