/// The arguments with which the main process starts a worker: `torture worker …`.
struct WorkerArguments {
  let directory: RunDirectory
  /// Its place among the workers; the successor of a killed worker takes it over.
  let slot: Int
  /// The number of the worker in the run, from 1; successors have their own.
  let life: Int
  let seed: UInt64
  /// The end of its work, in nanoseconds since the machine started.
  let end: UInt64
  let processes: Int
  let brokenRule: String?
  let kinds: Set<Kind>

  fileprivate static let intact = "intact"

  var words: [String] {
    [
      directory.path, "\(slot)", "\(life)", "\(seed)", "\(end)", "\(processes)",
      brokenRule ?? Self.intact, Kind.text(kinds),
    ]
  }
}

extension WorkerArguments {
  init(_ words: [String]) throws(UsageError) {
    guard words.count == 8, let slot = Int(words[1]), let life = Int(words[2]),
      let seed = UInt64(words[3]), let end = UInt64(words[4]), let processes = Int(words[5]),
      let kinds = Kind.list(words[7])
    else { throw UsageError(description: "workers are started by the program itself") }
    self.init(
      directory: RunDirectory(path: words[0]), slot: slot, life: life, seed: seed, end: end,
      processes: processes, brokenRule: words[6] == Self.intact ? nil : words[6], kinds: kinds)
  }
}
