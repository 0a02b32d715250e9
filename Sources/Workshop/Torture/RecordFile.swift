import SystemCalls

/// The record of one process, written one piece per write, so that it survives a kill.
final class RecordFile: Sendable {
  private let file: SharedDescriptor

  init(_ path: String) throws(Errno) {
    file = SharedDescriptor(
      try FileDescriptor.open(path, [.writeOnly, .create, .append, .noFollow]))
  }

  func append(_ text: String) throws(Errno) {
    try file.descriptor.writeAll(Array(text.utf8))
  }

  static func text(_ path: String) throws(Errno) -> String {
    let file = try FileDescriptor.open(path, .readOnly)
    let size = Int(try file.status().size)
    return String(
      decoding: try file.readToEnd(expectedBytes: size, maximumBytes: 4 << 30), as: UTF8.self)
  }
}

/// The directory of a run's files.
struct RunDirectory: Codable {
  let path: String

  var container: String { path + "/container" }
  private var records: String { path + "/records" }

  /// Returns the path of the file that is sent under a number.
  func file(_ number: UInt64) -> String { "\(path)/files/\(number)" }
  func observations(life: Int) -> String { "\(records)/observations-\(life)" }
  func journal(life: Int, _ strand: Strand) -> String {
    "\(records)/journal-\(life)-\(strand.rawValue)"
  }

  func create() throws(Errno) {
    for directory in [path, container, records, path + "/files"] { try makeDirectory(directory) }
  }

  func remove() throws(Errno) {
    let remove = try ChildProcess("rm", ["-rf", "--", path])
    _ = try remove.wait(until: .now + .seconds(60))
  }
}
