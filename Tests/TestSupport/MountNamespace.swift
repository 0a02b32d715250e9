import SystemCalls

/// File systems that a test mounts for itself: a shell in a mount namespace of its own, so that
/// nobody else sees them, and nothing is left of them when the test ends, however it ends.
///
/// Other processes reach them under `inside`, through the kernel's door to that namespace
/// (proc_pid_root(5)).
package final class MountNamespace: Sendable {
  private let shell: Participant
  private let place: TemporaryDirectory

  package struct Failure: Error, CustomStringConvertible {
    package let description: String
  }

  // Answers each line with one: the command's status and what it printed. It is the first process of
  // its own process namespace, so when it ends, also for want of input because the test was killed,
  // so do the programs that serve a file system to it.
  private static let answering = """
    PATH=$PATH:/usr/sbin:/sbin
    while IFS= read -r line; do
      said=$(eval "$line" 2>&1 </dev/null); status=$?
      printf '%s %s\\n' $status "$(printf %s "$said" | tr '\\n' ' ')"
    done
    """

  /// - Throws: `Failure` where the user may have no such namespace.
  package init() throws {
    place = try TemporaryDirectory()
    let asRoot = Program.effectiveUser == 0 ? [] : ["--map-root-user"]
    shell = try Participant(
      program: "unshare",
      asRoot + ["--mount", "--pid", "--kill-child", "sh", "-c", Self.answering])
    try run("true")
  }

  // Before the directory is removed: removing a place that something is mounted on takes the mounts
  // apart, but not one that lies on another and holds it (a loop device's file system on the one
  // with its file), which nobody could reach any more.
  deinit {
    do {
      try run(
        "cd /; while read -r source target rest; do case $target in '\(place.path)'/*) "
          + "umount -l $target; esac; done </proc/self/mounts")
    } catch {
      print("cannot unmount what is under \(place.path): \(error)")
    }
  }

  /// The directory where commands run, as everybody sees it: without what is mounted on it.
  package var outside: String { place.path }
  /// The same directory with what is mounted on it.
  package var inside: String { "/proc/\(shell.processID)/root" + place.path }

  /// Runs a command in one line, and returns what it printed in one line.
  ///
  /// - Throws: `Failure` with what it printed, when its status is not 0.
  @discardableResult
  package func run(_ command: String) throws -> String {
    let answer = try shell.ask("cd '\(place.path)' && \(command)")
    guard answer.hasPrefix("0 ") else {
      throw Failure(description: "\(command): status \(answer)")
    }
    return String(answer.dropFirst(2))
  }

  /// Why the command fails in a namespace of its own; nil when it does not.
  package static func obstacle(to command: String) -> String? {
    do {
      try MountNamespace().run(command)
      return nil
    } catch {
      return "\(error)"
    }
  }
}
