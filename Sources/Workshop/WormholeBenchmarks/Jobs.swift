import WormholeTerminals
import WormholeWorkshop

extension Worker {
  /// The jobs of workers, whose first argument is a directory or a socket.
  private static let jobs: [String: @Sendable ([String]) throws -> Void] = [
    // Increments a value for a while on command; ours and raw.
    "increment": { try UpdateRows.serve($0[0], name: $0[1]) },
    "increment-raw": { try UpdateRows.serveRaw($0[0], name: $0[1]) },
    // Answers each "ping" with a "pong" of the same number, for each kind of listener.
    "echo": { try LatencyRows.echo($0[0], $0[1]) },
    // Observes many names and reports the cost.
    "observe": { try ObserverRows.serve($0[0], count: Int($0[1]) ?? 0) },
    // Is present until it is killed; ours and raw.
    "present": { try PresenceRows.present($0[0]) },
    "present-raw": { try PresenceRows.presentRaw($0[0]) },
    // Answers requests; ours, and raw.
    "answer": { try RequestRows.answer($0[0], local: $0.dropFirst().first) },
    "answer-raw": { try RequestRows.answerRaw($0[0]) },
    // Sends durable entries on command.
    "send-durable": { try QueueRows.send($0[0], as: $0[1]) },
    // Does an operation that is counted.
    "count": { try CountRows.count($0[0], $0.dropFirst().first ?? "") },
    // Presents files.
    "present-files": { try CoordinationRows.present($0[0]) },
  ]

  static func run(_ arguments: [String]) throws {
    guard arguments.count >= 2, let job = jobs[arguments[0]] else {
      throw Misuse("a worker is started by the program itself only")
    }
    try job(Array(arguments.dropFirst()))
  }
}
