import Synchronization
import Testing
import WormholeTestSupport

@testable import WormholeCommand

/// Swift Testing also has a type of this name.
private typealias ExitStatus = WormholeCommand.ExitStatus

@Suite("The program answers with text on the right stream and an exit status", .blocking)
struct WormholeProgramTests {
  /// The output of a run.
  private final class Streams: Sendable {
    let output = Mutex<[UInt8]>([])
    let error = Mutex<[UInt8]>([])
  }

  private struct Outcome {
    let status: ExitStatus
    let output: String
    let error: String
  }

  private static let echo = CommandDescription(
    name: "echo",
    abstract: "Print the text.",
    arguments: [.operand("text", help: "The text.")],
    needsContainer: false
  ) { arguments, environment in
    let text = arguments.requiredText("text")
    if text == "fail" {
      throw CommandError(
        cannot: "echo fail\u{1B}[31m", because: "it failed", status: .badData)
    }
    try environment.writeStandardOutput(Array(text.utf8))
    throw ExitStatus.no
  }

  private struct Broken: Error {}

  private func run(_ arguments: [[UInt8]], outputIsBroken: Bool = false) -> Outcome {
    let streams = Streams()
    let environment = CommandEnvironment(
      variable: { _ in nil },
      writeStandardOutput: { bytes in
        if outputIsBroken { throw Broken() }
        streams.output.withLock { $0 += bytes }
      },
      writeStandardError: { bytes in streams.error.withLock { $0 += bytes } })
    let root = CommandDescription(
      name: "sample",
      abstract: "A sample.",
      subcommands: [Self.echo],
      version: "1.2.3")
    let program = WormholeProgram(root: root, environment: environment)
    let status = program.run(arguments)
    return Outcome(
      status: status,
      output: String(decoding: streams.output.withLock { $0 }, as: UTF8.self),
      error: String(decoding: streams.error.withLock { $0 }, as: UTF8.self))
  }

  private func run(_ arguments: String..., outputIsBroken: Bool = false) -> Outcome {
    run(arguments.map { Array($0.utf8) }, outputIsBroken: outputIsBroken)
  }

  @Test("A subcommand gets its arguments and decides the status")
  func subcommand() {
    let outcome = run("echo", "hé")
    #expect(outcome.status == .no)
    #expect(outcome.output == "hé")
    #expect(outcome.error == "")
  }

  @Test("An error names verb, object and reason, and cannot control the terminal")
  func commandError() {
    let outcome = run("echo", "fail")
    #expect(outcome.status == .badData)
    #expect(outcome.output == "")
    #expect(outcome.error == "sample: cannot echo fail\\u{1B}[31m: it failed\n")
  }

  @Test("The requested output goes to standard output with status 0")
  func asked() {
    #expect(run("--version").output == "1.2.3\n")
    #expect(run("--version").status == .done)
    #expect(run("help").output.hasPrefix("OVERVIEW: A sample.\n"))
    #expect(run("echo", "--help").output.contains("USAGE: sample echo <text>\n"))
    #expect(run("--generate-completion-script", "bash").output.contains("complete -F _sample"))
  }

  @Test("A mistake goes to standard error with the usage line and status 64")
  func usage() {
    let outcome = run("echo")
    #expect(outcome.status == .usage)
    #expect(outcome.output == "")
    #expect(
      outcome.error == """
        sample: missing expected argument '<text>'
        Usage: sample echo <text>
          See 'sample help echo' for more information.

        """)
    let bare = run()
    #expect(bare.status == .usage)
    #expect(bare.output == "")
    #expect(bare.error.hasPrefix("sample: missing subcommand\n\nOVERVIEW: A sample.\n"))
  }

  @Test("An argument that is not UTF-8 is refused by its position")
  func invalidUTF8() {
    let invalid: [[UInt8]] = [[0xFF], [0x61, 0xC3], [0xED, 0xA0, 0x80]]
    for bytes in invalid {
      let outcome = run([Array("echo".utf8), bytes])
      #expect(outcome.status == .usage)
      #expect(outcome.error.hasPrefix("sample: argument 2 is not valid UTF-8\n"))
    }
  }

  @Test("A standard output that cannot be written is an input/output error")
  func brokenOutput() {
    let outcome = run("help", outputIsBroken: true)
    #expect(outcome.status == .inputOutput)
    #expect(outcome.error.hasPrefix("sample: cannot write to standard output: "))
  }

  @Test("The exit statuses are those promised to scripts")
  func statuses() {
    let promised: [ExitStatus: Int32] = [
      .done: 0, .no: 1, .usage: 64, .badData: 65, .inputOutput: 74, .permission: 77,
      .deadline: 124,
    ]
    for (status, number) in promised { #expect(status.rawValue == number) }
  }

  @Test("Each command either has subcommands or runs, and has a line of its own")
  func table() {
    let paths = CommandDescription.root.paths()
    let lines = paths.map { $0.dropFirst().map(\.name) }
    #expect(Set(lines).count == lines.count)
    for command in paths.compactMap(\.last) {
      #expect((command.run == nil) == !command.subcommands.isEmpty, "\(command.name)")
    }
  }
}
