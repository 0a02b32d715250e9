import AppGroup

/// How the main process tells a worker what it is: `torture worker …`.
struct WorkerArguments {
  let directory: RunDirectory
  /// Its place among the workers; a successor of a killed one takes it over.
  let slot: Int
  /// Counts all workers of a run, successors too, from 1.
  let life: Int
  let seed: UInt64
  /// When it stops working, in nanoseconds since the machine started.
  let end: UInt64
  let processes: Int
  let fault: LeaseFault?
  let kinds: Set<Kind>

  init(
    directory: RunDirectory, slot: Int, life: Int, seed: UInt64, end: UInt64, processes: Int,
    fault: LeaseFault?, kinds: Set<Kind>
  ) {
    self.directory = directory
    self.slot = slot
    self.life = life
    self.seed = seed
    self.end = end
    self.processes = processes
    self.fault = fault
    self.kinds = kinds
  }

  init(_ words: [String]) throws(UsageError) {
    guard words.count == 8, let slot = Int(words[1]), let life = Int(words[2]),
      let seed = UInt64(words[3]), let end = UInt64(words[4]), let processes = Int(words[5]),
      let kinds = Kind.list(words[7])
    else { throw UsageError(description: "workers are started by the program itself") }
    self.init(
      directory: RunDirectory(path: words[0]), slot: slot, life: life, seed: seed, end: end,
      processes: processes, fault: LeaseFault(rule: words[6]), kinds: kinds)
  }

  var words: [String] {
    [
      directory.path, "\(slot)", "\(life)", "\(seed)", "\(end)", "\(processes)",
      fault?.rule ?? "intact", Kind.text(kinds),
    ]
  }
}
