import FoundationEssentials
import Wormhole
import WormholeSystem
import WormholeToolkit

extension CommandDescription {
  static let edit = CommandDescription(
    name: "edit",
    abstract: "Change a message with an editor.",
    discussion: """
      The message is written as JSON to a temporary file for the editor that VISUAL, or else EDITOR, \
      names, 'vi' by default; without a terminal, one of the two variables must name it. When the editor ends with status 0, the new text becomes the message; null \
      removes it, and a text that was left as it is changes nothing. Other processes are not kept waiting \
      meanwhile.

      If another process has changed the message meanwhile, it stays as that process made it, and the exit \
      status is 1; if the text is not JSON, the status is 65. In both cases the text is kept in its file, \
      whose path is printed.
      """,
    arguments: [.identifier, .nulls, .durable("the new message"), .writeTimeout]
  ) { arguments, environment in
    let identifier = arguments.requiredText("identifier")
    let value = try arguments.container.open().value(identifier)
    let snapshot = try value.snapshot()
    let message = try snapshot.propertyList()
    let before =
      try message.map {
        try OutputFormat.json.bytes($0, of: identifier.quoted, isPretty: true)
      } ?? Array("null\n".utf8)
    let draft = try Draft(before, environment)
    let after = try draft.edited()
    guard after != before else {
      draft.remove()
      return environment.report("\(identifier.quoted) is unchanged")
    }
    try draft.keepingAfterFailure {
      let new = try JSONInput.readOptional(after, source: "the text", nulls: arguments.nulls)
      guard new != nil || message != nil else { return }
      let isDone = try value.compareAndSet(
        versionText: snapshot.version?.text, new, durability: arguments.durability,
        expiresAfter: snapshot.expiration.map { .seconds(max(0, $0.timeIntervalSinceNow)) },
        until: arguments.deadline())
      guard isDone else {
        throw CommandError.no(
          "change \(identifier.quoted)", because: "another process has changed it meanwhile")
      }
    }
  }
}

/// A temporary file with the text that a person edits.
private struct Draft {
  private let path: String
  private let environment: CommandEnvironment
  private let editor: String
  private let before: [UInt8]

  init(_ text: [UInt8], _ environment: CommandEnvironment) throws {
    self.environment = environment
    before = text
    let named = ["VISUAL", "EDITOR"].compactMap { environment.variable($0) }.first { !$0.isEmpty }
    guard named != nil || environment.isInputTerminal && environment.isTerminal else {
      throw CommandError(
        cannot: "edit the message",
        because:
          "there is no terminal for an editor; 'update' changes a message with any command, and "
          + "VISUAL or EDITOR may name a program that needs no terminal", status: .usage)
    }
    editor = named ?? "vi"
    let path = "\(environment.temporaryDirectory)/wormhole-\(Nonce.next()).json"
    self.path = path
    // Private to this user, and not through a link that another user has put there.
    try reporting(
      cannot: "write \(path) (TMPDIR names another directory)",
      FileDescriptor.open(path, [.writeOnly, .create, .exclusive], mode: 0o600).writeAll(text))
  }

  func edited() throws -> [UInt8] {
    // A shell, because the variable may contain options.
    let shell = ExternalCommand(words: ["/bin/sh", "-c", editor + " \"$1\"", editor, path])
    let termination: Termination
    do {
      // The editor gets the terminal's signals, and decides.
      let interruption = try Interruption(quits: true)
      let child = try shell.start(variables: [:])
      termination = try environment.withoutTimeLimit {
        try child.waitForEnd(interruption).termination
      }
    } catch let error as Errno {
      remove()
      throw shell.error(error)
    }
    let text = try environment.content(of: path)
    // The shell's status is the editor's.
    guard let failure = ExternalCommand(words: [editor]).failure(termination) else { return text }
    if text == before { remove() } else { environment.report("your text is kept in \(path)") }
    throw CommandError(
      cannot: "edit the message", because: "\(failure); nothing was changed",
      status: ExitStatus(termination))
  }

  /// Runs a closure with the text, and removes the file unless that fails.
  func keepingAfterFailure(_ body: () throws -> Void) throws {
    do {
      try body()
    } catch {
      environment.report("your text is kept in \(path)")
      throw error
    }
    remove()
  }

  func remove() {
    do throws(Errno) {
      try removeFile(path, at: Directory.current)
    } catch {
      environment.report("\(path) cannot be removed: \(error)")
    }
  }
}
