import WormholeWorkshop

/// The names that all workers use; there are only a few, so that workers meet.
enum Workload {
  static let counters = ["counter/0", "counter/1", "counter/2"]
  /// One of them is too long for a file name.
  static let registers = [
    "register/0", "register/é \"1\"", "register/" + String(repeating: "2", count: 260),
  ]
  static let large = ["large"]
  /// Two counters that are always changed together, so that they are equal at each moment.
  static let twins = ["twin/0", "twin/1"]
  static let bells = ["bell/0", "bell/1"]
  /// The 64-bit state of the first notification.
  static let state = "state"

  /// Written only by the worker in one place, in ascending order.
  static func single(_ slot: Int) -> String { "single/\(slot)" }

  static func isLarge(_ key: String) -> Bool { key == large[0] }
  static func isCounter(_ key: String) -> Bool { key.hasPrefix("counter/") }

  /// Returns whether the numbers of a key only ever grow.
  static func isAscending(_ key: String) -> Bool { isCounter(key) || key.hasPrefix("single/") }

  static func values(processes: Int) -> [String] {
    counters + registers + large + (0..<processes).map(single)
  }

  /// The initial state of a notification (notify(3)).
  static let initial: [String: HistoryValue] = [state: 0]

  /// Returns the first of the numbers that only one process writes: `life` counts the processes of
  /// a run.
  static func firstNumber(life: Int) -> UInt64 { UInt64(life) << 32 }

  /// Returns the process number in a history, because the strands and observers of a worker act on
  /// their own.
  static func process(life: Int, _ strand: Strand) -> Int { life * 100 + strand.rawValue }
  static func process(life: Int, observer: Int) -> Int { life * 100 + 10 + observer }
}

/// The strands that run side by side in one worker.
enum Strand: Int, CaseIterable {
  /// Calls that block.
  case thread
  /// The same calls with `await`.
  case task
  /// Guaranteed messages.
  case queues
  /// Requests.
  case requests
  /// Files.
  case files
  /// A log.
  case logs
  /// The watch of all changes.
  case watches
}

/// A kind of work: all kinds, or those that `--only` names.
enum Kind: String, CaseIterable, Codable {
  /// Values and notifications.
  case values
  /// Guaranteed messages.
  case queues
  /// Requests between sessions.
  case requests
  /// Files between sessions.
  case files
  /// A log with two subscribers.
  case logs
  /// Presence.
  case presence
  /// All changes of the keys on etcd, as a watch reports them.
  case watches

  /// The kinds for a container that is a directory.
  static let ofDirectories = Set(Kind.allCases).subtracting([.watches])
  /// The kinds for a container on etcd, which has no logs.
  static let onEtcd = Set(Kind.allCases).subtracting([.logs])

  /// Returns the kinds in a list such as "queues,files", or nil for any other text.
  static func list(_ text: String) -> Set<Kind>? {
    let kinds = text.split(separator: ",").map { Kind(rawValue: String($0)) }
    guard !kinds.isEmpty, !kinds.contains(nil) else { return nil }
    return Set(kinds.compactMap { $0 })
  }

  static func text(_ kinds: Set<Kind>) -> String {
    Kind.allCases.filter(kinds.contains).map(\.rawValue).joined(separator: ",")
  }
}
