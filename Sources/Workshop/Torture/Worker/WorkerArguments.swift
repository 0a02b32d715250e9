/// The argument with which the main process starts a worker, as JSON: `torture worker {…}`.
struct WorkerArguments: Codable {
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
}
