import Testing
import Wormhole
import WormholeSystem
import WormholeTestSupport
import WormholeToolkit

@testable import WormholeInspection

@Suite("Two programs, of which one reads what the other writes", .blocking)
struct ProgramPairTests {
  private let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory() }

  /// - Returns: What the second program has written.
  private func run(
    _ first: String, into second: String, check: () throws -> Void = {}
  ) throws -> String {
    let place = SharedDescriptor(try FileDescriptor.open(directory.path, [.readOnly, .directory]))
    let output = try FileDescriptor.open(
      directory.path + "/output", [.readWrite, .create, .truncate])
    try ProgramPair(
      ["sh", "-c", first], into: ["sh", "-c", second], to: output.rawValue, in: place
    ).run(check: check)
    return try text("output")
  }

  private func text(_ name: String) throws -> String {
    let file = try FileDescriptor.open(directory.path + "/" + name, .readOnly)
    return String(
      decoding: try file.readToEnd(expectedBytes: 0, maximumBytes: 1 << 20), as: UTF8.self)
  }

  private func failure(_ first: String, _ second: String) -> ProgramPair.Failure? {
    #expect(throws: ProgramPair.Failure.self) { try run(first, into: second) }
  }

  @Test("end with what the second one has made")
  func whole() throws {
    #expect(try run("echo one; echo two", into: "read a; cat") == "two\n")
    // More than a pipe holds.
    #expect(try run("head -c 1000000 /dev/zero", into: "wc -c") == "1000000\n")
  }

  @Test("fail together: the second one never takes a part for the whole")
  func first() throws {
    // It closes its output long before it fails.
    let error = failure(
      "echo part; exec >&-; sleep 0.5; echo why >&2; exit 3", "cat; echo end; : >end")
    #expect(error?.end == .exited(3) && error?.lines == ["why"], "\(error as Any)")
    #expect(try !text("output").contains("end"))
    #expect(throws: Errno.noSuchFile) { try fileStatus(directory.path + "/end") }
    let killed = failure("echo part; exec >&-; sleep 0.5; kill -KILL $$", "cat; echo end")
    #expect(killed?.end == .killed(signal: 9), "\(killed as Any)")
    #expect(try !text("output").contains("end"))
  }

  @Test("fail when the second one does, which has its own reason")
  func second() throws {
    let error = failure("yes", "head -c 5; echo no room >&2; exit 4")
    #expect(error?.end == .exited(4) && error?.lines == ["no room"], "\(error as Any)")
    // What it has not read may be damaged.
    let early = failure("exec yes", "head -c 5")
    #expect(early?.end == .killed(signal: 13), "\(early as Any)")
  }

  @Test("are killed when the check fails, soon")
  func checked() throws {
    struct Stopped: Error {}
    let begin = ContinuousClock.now
    #expect(throws: Stopped.self) {
      _ = try run("echo $$ >first; exec sleep 1000", into: "echo $$ >second; exec sleep 1000") {
        let started = try ["first", "second"].allSatisfy {
          try exists(directory.path + "/" + $0, at: Directory.current) && text($0).hasSuffix("\n")
        }
        if started { throw Stopped() }
      }
    }
    #expect(begin.duration(to: .now) < .seconds(60))
    for name in ["first", "second"] {
      let id = try #require(Int32(text(name).dropLast()))
      #expect(ProcessStatus.of(id)?.isDead != false, "\(name)")
    }
  }

  @Test("are not started if one of them is missing, which is named")
  func missing() throws {
    let place = SharedDescriptor(try FileDescriptor.open(directory.path, [.readOnly, .directory]))
    for (first, second) in [("no-such-program", "cat"), ("cat", "no-such-program")] {
      let error = #expect(throws: ProgramPair.Failure.self) {
        _ = try ProgramPair([first], into: [second], in: place)
      }
      #expect(error?.program == "no-such-program" && error?.end == nil)
      let sentence = error?.reported("act", path: "file").description
      #expect(
        sentence
          == "cannot act (file): the program no-such-program is not installed; install GNU tar and gzip, in directories that PATH names"
      )
    }
  }

  @Test(
    "have said what error of the kernel it was",
    arguments: [
      ("tar: a: Cannot write: No space left on device", "no space left on device; free space"),
      ("tar: a: Wrote only 512 of 10240 bytes", "no space left on device; free space"),
      ("gzip: stdout: Disk quota exceeded", "disk quota exceeded"),
      ("gzip: stdin: unexpected end of file", "gzip: stdin: unexpected end of file"),
    ])
  func reasons(line: String, reason: String) throws {
    for program in ["tar", "gzip"] {
      let failure = ProgramPair.Failure(
        program: program, end: .exited(2), lines: [line, "tar: more"])
      #expect(failure.reported("act", path: "file").description.contains(reason))
      #expect(failure.isOfContent == reason.hasPrefix("gzip"))
    }
    let other = ProgramPair.Failure(program: "tar", end: .exited(1), lines: ["tar: unknown option"])
    #expect(!other.isOfContent)
    #expect(other.reported("act", path: "file").description.contains("install GNU tar"))
  }
}
