import Wormhole
import WormholeInspection
import WormholeSystem

/// The check that a swept container holds only expected entries.
struct Leftovers {
  let path: String

  /// The expected entries in the directory of a value or notification.
  private static let belongs: Set<String> = [
    "value.plist", "state.plist", "identifier", "lease", "lease/held", "lease/held/clean",
    "lease/taken.plist", "lease/kept-\(ProcessIdentity.boot)",
  ]

  func check(
    after sweep: SharedContainer.SweepReport, _ container: SharedContainer
  ) throws -> Check {
    var evidence = sweep.failures.map { "the sweep: \($0)" }
    evidence += try container.report().leftovers.map { "\($0.kind): \($0.path)" }
    var directories = 0
    for entry in try entries(path) {
      // The report covers the content of these.
      guard !["presence", "queues", "consumers", "logs", "mailboxes", "own"].contains(entry) else {
        continue
      }
      guard ["container.plist", "values", "notifications"].contains(entry) else {
        evidence.append(entry)
        continue
      }
      guard entry != "container.plist" else { continue }
      // An entry on its way into the container may stay for a minute.
      for name in try entries(path + "/" + entry) where !name.hasPrefix(".new-") {
        directories += 1
        evidence += try strangers(entry + "/" + name)
      }
    }
    return Check(
      promise: "a sweep leaves nothing behind",
      extent: "\(directories) directories, \(sweep.removed.count) leftovers removed",
      evidence: Array(evidence.prefix(5)))
  }

  private func strangers(_ name: String) throws -> [String] {
    var bells = 0
    return try tree(path + "/" + name, "").filter { path in
      if name.hasPrefix("notifications/"), path.hasPrefix("bell-") {
        bells += 1
        return bells > 1
      }
      return !Self.belongs.contains(path)
    }.map { "\(name)/\($0)" }
  }

  private func tree(_ root: String, _ prefix: String) throws -> [String] {
    try entries(root + "/" + prefix).flatMap { name in
      let path = prefix.isEmpty ? name : prefix + "/" + name
      let isDirectory = try fileStatus(root + "/" + path).kind == .directory
      return [path] + (isDirectory ? try tree(root, path) : [])
    }
  }

  private func entries(_ path: String) throws(Errno) -> [String] {
    let directory = try FileDescriptor.open(path, [.readOnly, .directory])
    return try directory.entries().map(\.name.text).sorted()
  }
}
