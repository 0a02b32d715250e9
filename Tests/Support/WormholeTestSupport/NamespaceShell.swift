import WormholeSystem

/// A shell in namespaces of its own (unshare(1)), which runs commands there for as long as this lives.
package final class NamespaceShell: Sendable {
  private let shell: Participant

  package struct Failure: Error, CustomStringConvertible {
    package let description: String
  }

  // Answers each line with one: the command's status and its output.
  private static let answering = """
    PATH=$PATH:/usr/sbin:/sbin
    while IFS= read -r line; do
      said=$(eval "$line" 2>&1 </dev/null); status=$?
      printf '%s %s\\n' $status "$(printf %s "$said" | tr '\\n' ' ')"
    done
    """

  /// - Parameters:
  ///   - options: The options of unshare(1): which namespaces it has for itself.
  ///   - program: The program that starts unshare(1), with its arguments; nothing if it is started here.
  /// - Throws: `Failure` if the user may not create such namespaces.
  package init(_ options: [String], startedBy program: [String] = []) throws {
    let words = program + ["unshare"] + options + ["sh", "-c", Self.answering]
    shell = try Participant(program: words[0], Array(words.dropFirst()))
    try run("true")
  }

  package var processID: Int32 { shell.processID }

  /// Runs a command on one line, and returns its output on one line.
  ///
  /// - Throws: `Failure` with its output if its status is not 0.
  @discardableResult
  package func run(_ command: String) throws -> String {
    let answer = try shell.ask(command)
    guard answer.hasPrefix("0 ") else {
      throw Failure(description: "\(command): status \(answer)")
    }
    return String(answer.dropFirst(2))
  }
}
