package import Wormhole
import WormholeSystem

/// The place of a run: its own directory, which `remove` removes at the end.
package final class Bench {
  package let path: String
  package let isQuick: Bool

  /// The number of rounds for rows with other processes.
  package var rounds: Int { isQuick ? 5 : 15 }

  /// The number of short rounds in this process alone. As a rule, each is over before the scheduler
  /// gives the core to another process, so a busy machine hardly disturbs the median.
  package var shortRounds: Int { isQuick ? 25 : 201 }

  /// Makes the directory.
  ///
  /// - Parameter name: The beginning of its name; the process completes it.
  package init(under directory: String, name: String = "benchmarks", isQuick: Bool) throws {
    let base =
      directory.hasPrefix("/") ? directory : try linkTarget("/proc/self/cwd") + "/" + directory
    path = "\(base)/\(name)-\(Program.processID)"
    self.isQuick = isQuick
    try makeDirectory(path)
    // ext4 skips every inode of a group that was freed in the last minute, so rows in one group slow
    // each other down, and so do other programs. With this attribute each row's directory gets its
    // own group (chattr(1), "T"). Elsewhere the rows disturb each other, but ours as much as the
    // floor.
    try? runQuietly("chattr", ["+T", path])
  }

  /// Removes the directory and everything in it.
  package func remove() throws { try removeTree(path) }

  /// Creates an empty directory below the run's.
  package func directory(_ name: String) throws -> String {
    let made = path + "/" + name
    try makeDirectory(made)
    return made
  }

  package func container(_ name: String) throws -> SharedContainer {
    try SharedContainer(path: try directory(name))
  }

  /// Makes a container with a value, and the floor's value beside it.
  package func value(_ name: String) throws -> (ours: Value, floor: RawValue) {
    (try container(name).value("value"), try RawValue(path + "/" + name, "raw"))
  }

  /// Returns the number itself, or a tenth of it in a quick run.
  package func scaled(_ number: Int) -> Int { isQuick ? max(number / 10, 1) : number }

  package func fileSystemName() throws -> String {
    let magic = try FileDescriptor.open(path, [.pathOnly, .directory]).fileSystem().magic
    // The numbers are those of statfs(2).
    let names: [UInt32: String] = [
      0xEF53: "ext4", 0x0102_1994: "tmpfs", 0x5846_5342: "xfs", 0x9123_683E: "btrfs",
      0x794C_7630: "overlayfs", 0x2FC1_2FC1: "zfs", 0xF2F5_2010: "f2fs",
    ]
    return names[magic] ?? "file system 0x" + String(magic, radix: 16)
  }

  /// An expected ratio on ext4; there is none on other file systems.
  package func onExt4(_ limit: Double) throws -> Row.Expectation? {
    try fileSystemName() == "ext4" ? .ratioAtMost(limit) : nil
  }
}
