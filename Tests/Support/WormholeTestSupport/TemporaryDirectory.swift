import FoundationEssentials
import Glibc
package import WormholeSystem
import WormholeToolkit

/// A directory of one test, which is removed with its last user, at the latest with the process.
///
/// Set WORMHOLE_KEEP to keep it; its path is then printed.
package final class TemporaryDirectory: Sendable {
  package let path: String

  package init(under parent: String? = nil) throws {
    let base = parent ?? Self.usual
    if Self.keeps {
      path = "\(base)/wormhole-test-\(Program.processID)-\(UInt64.random(in: .min ... .max))"
      print("kept: \(path)")
    } else {
      path = try RunDirectory.inside(base).newPath()
    }
    try makeDirectory(path)
  }

  /// TMPDIR. If it is not set: memory, because a disk makes the suite half as long again, and what
  /// disks do has tests of its own; but only where it holds programs and everything that tests write.
  private static let usual: String = {
    if let set = Program.environment("TMPDIR") { return set }
    let memory = "/dev/shm"
    // ST_NOEXEC, which Swift does not see, because it is GNU's.
    let noPrograms: UInt = 8
    var status = statvfs()
    guard access(memory, W_OK) == 0, statvfs(memory, &status) == 0, status.f_flag & noPrograms == 0,
      UInt64(status.f_bavail) * UInt64(status.f_frsize) >= 4 << 30
    else { return "/tmp" }
    return memory
  }()

  /// The directory of this run, which is removed with the process.
  package static func ofRun() throws -> String { try RunDirectory.inside(usual).path }

  /// A place on another file system than the usual one; nil where there is none.
  package static let elsewhere: String? = {
    let places = ["/tmp", "/var/tmp", "/dev/shm"]
    let found = places.first { place in
      var (here, there) = (stat(), stat())
      return stat(usual, &here) == 0 && stat(place, &there) == 0 && access(place, W_OK) == 0
        && here.st_dev != there.st_dev
    }
    if found == nil { print("skipped: no other file system than that of \(usual)") }
    return found
  }()

  /// A place that other users can enter, as the usual one need not be.
  package static let enteredByAll: String = {
    [usual, "/tmp", "/var/tmp"].first { place in
      sequence(first: URL(filePath: place)) { url in
        url.path == "/" ? nil : url.deletingLastPathComponent()
      }
      .allSatisfy { url in
        var status = stat()
        return stat(url.path, &status) == 0 && status.st_mode & S_IXOTH != 0
      }
    } ?? usual
  }()

  private static var keeps: Bool { Program.environment("WORMHOLE_KEEP") != nil }

  deinit {
    guard !Self.keeps else { return }
    do {
      // In this process: five thousand of rm(1) took one thirtieth of the suite.
      try FileManager.default.removeItem(atPath: path)
    } catch {
      // A process of the test still works in it; it goes with the directory of the run.
      return
    }
  }

  /// The names in the directory, or in one of its own, sorted.
  package func names(_ place: String = ".") throws(Errno) -> [String] {
    try Self.names(of: path + "/" + place)
  }

  /// The names in any directory, sorted.
  package static func names(of directory: String) throws(Errno) -> [String] {
    try FileDescriptor.open(directory, [.readOnly, .directory]).entries().map(\.name.text).sorted()
  }

  /// Runs a shell's command in the directory, or in one of its own.
  package func shell(
    _ command: String, in place: String = ".", within limit: Duration = testPatience
  ) throws {
    let shell = try ChildProcess("sh", ["-ec", "cd '\(path)/\(place)'; \(command)"])
    let end = try shell.wait(until: .now + limit)
    guard end == .exited(0) else {
      throw NeverHappened(what: "\(command): \(String(describing: end))")
    }
  }

  /// All entries of the directory, for the comment of a failed expectation.
  package var listing: String {
    var lines: [String] = []
    list(path, into: &lines)
    return path + "\n" + lines.joined(separator: "\n")
  }

  private func list(_ directory: String, into lines: inout [String]) {
    do {
      let open = try FileDescriptor.open(directory, [.readOnly, .directory])
      for entry in try open.entries() {
        let child = directory + "/" + entry.name.text
        let status = try fileStatus(child)
        lines.append("  \(child.dropFirst(path.count + 1)) \(status.kind) \(status.size)")
        if status.kind == .directory { list(child, into: &lines) }
      }
    } catch {
      lines.append("  \(directory): \(error)")
    }
  }
}
