import WormholeSystem

/// File systems that a test mounts for itself, in a shell with its own mount namespace. No other
/// process sees them, and nothing remains when the test ends, however it ends.
///
/// Other processes reach them under `inside`, through /proc (proc_pid_root(5)).
package final class MountNamespace: Sendable {
  private let shell: NamespaceShell
  private let place: TemporaryDirectory

  // The shell is the first process of its own process namespace. So when it ends, even because the test
  // was killed and its input is closed, the programs that serve a file system to it end too.
  package init() throws {
    place = try TemporaryDirectory()
    let asRoot = Program.effectiveUser == 0 ? [] : ["--map-root-user"]
    shell = try NamespaceShell(asRoot + ["--mount", "--pid", "--kill-child"])
  }

  // Before the directory is removed: removing a mount point detaches its mounts, but not one that
  // lies on another mount and holds it (a loop device's file system on the one with its file),
  // which could then never be reached again.
  deinit {
    do {
      try run(
        "cd /; while read -r source target rest; do case $target in '\(place.path)'/*) "
          + "umount -l $target; esac; done </proc/self/mounts")
    } catch {
      print("cannot unmount what is under \(place.path): \(error)")
    }
  }

  /// The directory in which commands run, without the file systems mounted on it.
  package var outside: String { place.path }
  /// The same directory with the file systems mounted on it.
  package var inside: String { "/proc/\(shell.processID)/root" + place.path }

  /// Runs a command on one line, and returns its output on one line.
  ///
  /// - Throws: `NamespaceShell.Failure` with its output if its status is not 0.
  @discardableResult
  package func run(_ command: String) throws -> String {
    try shell.run("cd '\(place.path)' && \(command)")
  }

  /// Whether this user may mount file systems in a namespace.
  package static let isPossible: Bool = {
    let obstacle = MountNamespace.obstacle(to: "mount -t tmpfs tmpfs .")
    if let obstacle { print("skipped: no mounts here: \(obstacle)") }
    return obstacle == nil
  }()

  /// Returns why the command fails in its own namespace, or nil if it does not.
  package static func obstacle(to command: String) -> String? {
    do {
      try MountNamespace().run(command)
      return nil
    } catch {
      return "\(error)"
    }
  }
}
