import SystemCalls

/// File systems that a test mounts for itself: a shell in a mount namespace of its own, so that
/// nobody else sees them, and nothing is left of them when the test ends, however it ends.
///
/// Other processes reach them under `root`, the kernel's door to that namespace (proc_pid_root(5)).
package final class MountNamespace: Sendable {
  private let shell: Participant

  package struct Failure: Error, CustomStringConvertible {
    package let description: String
  }

  // Answers each line with one: the command's status and what it printed. Without input any more,
  // also because the test was killed, it ends, and the namespace with it.
  private static let answering = """
    PATH=$PATH:/usr/sbin:/sbin
    while IFS= read -r line; do
      said=$(eval "$line" 2>&1 </dev/null); status=$?
      printf '%s %s\\n' $status "$(printf %s "$said" | tr '\\n' ' ')"
    done
    """

  /// - Throws: `Failure` where the user may have no such namespace.
  package init() throws {
    let asRoot = Program.effectiveUser == 0 ? [] : ["--map-root-user"]
    shell = try Participant(
      program: "unshare", asRoot + ["--mount", "sh", "-c", Self.answering])
    try run("true")
  }

  /// The path that everything in the namespace is seen under from outside.
  package var root: String { "/proc/\(shell.processID)/root" }

  /// Runs a command in one line, and returns what it printed in one line.
  ///
  /// - Throws: `Failure` with what it printed, when its status is not 0.
  @discardableResult
  package func run(_ command: String) throws -> String {
    let answer = try shell.ask(command)
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
