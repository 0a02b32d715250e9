import Testing
import WormholeSystem
import WormholeTestSupport
import WormholeToolkit

@Suite("The torture program", .blocking)
struct TortureProgramTests {
  private struct Outcome {
    let status: Termination?
    let output: String
  }

  /// Three workers keep two cores busy, because etcd takes as much time as they do.
  private static let onEtcd = ["--etcd", "--processes", "3"]

  /// Runs the program for some seconds; TORTURE_SEED repeats the choices of an earlier run.
  private func run(_ seconds: Int, _ more: [String] = []) throws -> Outcome {
    let directory = try TemporaryDirectory()
    let seed = Program.environment("TORTURE_SEED") ?? "\(UInt64.random(in: 0...999_999))"
    let arguments = ["--seconds", "\(seconds)", "--seed", seed, "--directory", directory.path]
    let pipe = try makePipe()
    let child = try ChildProcess(
      BuiltProgram.path("WormholeTorture"), arguments + more, output: pipe.write.rawValue)
    let output = pipe.takeRead()
    var bytes: [UInt8] = []
    let deadline = ContinuousClock.now + .seconds(90)
    while try waitReadable([output.descriptor.rawValue], until: deadline)[0] {
      let some = try Program.read(from: output.descriptor.rawValue, maximumBytes: 65_536)
      if some.isEmpty { break }
      bytes += some
    }
    return Outcome(
      status: try child.wait(until: deadline), output: String(decoding: bytes, as: UTF8.self))
  }

  @Test("finds nothing against the container as it is")
  func intact() throws {
    let outcome = try run(1)
    #expect(outcome.status == .exited(0), "\(outcome.output)")
    #expect(outcome.output.contains("checks hold"))
    #expect(!outcome.output.contains("FAILED"))
  }

  @Test("finds nothing against etcd as it is", .needsEtcd)
  func intactOnEtcd() throws {
    let outcome = try run(1, Self.onEtcd)
    #expect(outcome.status == .exited(0), "\(outcome.output)")
    #expect(outcome.output.contains("checks hold"))
    #expect(!outcome.output.contains("FAILED"))
  }

  @Test("leaves no etcd behind when it is killed", .needsEtcd)
  func killed() throws {
    let directory = try TemporaryDirectory()
    // A temporary one would be closed before the start, and its number used for something else.
    let nowhere = try FileDescriptor.open("/dev/null", .writeOnly)
    let child = try ChildProcess(
      BuiltProgram.path("WormholeTorture"),
      ["--etcd", "--seconds", "60", "--directory", directory.path, "--processes", "1"],
      output: nowhere.rawValue)
    func members() throws -> Int {
      try FileDescriptor.open("/proc", [.readOnly, .directory]).entries().count { entry in
        guard entry.name.text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else { return false }
        do {
          let file = try FileDescriptor.open("/proc/\(entry.name.text)/cmdline", .readOnly)
          let bytes = try file.readToEnd(expectedBytes: 0, maximumBytes: 1 << 20)
          let arguments = String(decoding: bytes, as: UTF8.self).split(separator: "\0")
          return arguments.first == "etcd" && arguments.contains { $0.hasPrefix(directory.path) }
        } catch {
          // It has ended.
          return false
        }
      }
    }
    try eventually("etcd runs") { try members() == 1 }
    try child.send(.kill)
    _ = try child.wait(until: soon)
    try eventually("etcd has ended") { try members() == 0 }
  }

  /// A rule that the processes leave out, and the checks of which one must fail then.
  struct Omission: Sendable, CustomTestStringConvertible {
    let rule: String
    var arguments: [String] = ["--only", "values"]
    var checks: [String] = ["reads, writes, updates and compare-and-sets"]

    var testDescription: String { rule }
  }

  /// Returns all with EVERY_STEP; otherwise one, another one in each run.
  private static func tried(_ omissions: [Omission]) -> [Omission] {
    TriedSteps.isThorough ? omissions : [omissions[TriedSteps.first % omissions.count]]
  }

  static let omissions = tried([
    // Staged by path, a change may land in a successor's lease.
    Omission(rule: "rule2"),
    // A new holder acts while the old one can still publish.
    Omission(rule: "rule5"),
    // A consumer that was stopped and replaced continues with its successor's entries, because it follows
    // its directory.
    Omission(
      rule: "queue", arguments: ["--only", "queues"],
      checks: ["a consumer that was replaced gets nothing new"]),
  ])

  static let omissionsOnEtcd = tried([
    // Nothing compares a value with what was read.
    Omission(
      rule: "put", arguments: onEtcd + ["--only", "values"], checks: ["no update is lost"]),
    // A watch goes on one revision too late: a change that was made while the connection was lost is not
    // reported.
    Omission(
      rule: "watch", arguments: onEtcd + ["--only", "values,watches"],
      checks: [
        "a watch reports every change",
        "observers receive the last value, the last post and the present processes",
      ]),
    // A consumer that was stopped and replaced goes on without asking whether it is.
    Omission(
      rule: "fence", arguments: ["--etcd", "--only", "queues"],
      checks: ["a consumer that was replaced gets nothing new"]),
  ])

  @Test("finds within seconds what a container lacks", arguments: omissions)
  func omitted(_ omission: Omission) throws { try expectFound(omission) }

  @Test(
    "finds within seconds what a container on etcd lacks", .needsEtcd, .waiting,
    arguments: omissionsOnEtcd)
  func omittedOnEtcd(_ omission: Omission) throws { try expectFound(omission) }

  /// The kernel decides the schedule, so longer runs follow if a short one does not find it, which is
  /// more likely on a busy machine, where another check may fail because of its time limit.
  private func expectFound(_ omission: Omission) throws {
    var last = ""
    for seconds in [1, 2, 4, 8, 16, 32] {
      let outcome = try run(seconds, ["--break", omission.rule] + omission.arguments)
      last = outcome.output
      guard omission.checks.contains(where: { last.contains("FAILED  " + $0) }) else { continue }
      #expect(outcome.status == .exited(1), "\(last)")
      #expect(last.contains("kept: "))
      return
    }
    Issue.record("a container without \(omission.rule) passed all runs: \(last)")
  }

  @Test(
    "refuses unknown arguments with status 64",
    arguments: [
      ["--seconds"], ["--seconds", "-1"], ["--break", "rule9"], ["--what"], ["--seed", "x"],
      ["--only", "all"], ["--only", ""], ["--only", "watches"], ["--etcd", "--only", "task"],
      ["--members", "3"], ["--etcd", "--members", "2"], ["--break", "put"],
      ["--etcd", "--break", "rule2"],
    ])
  func usage(arguments: [String]) throws {
    let nowhere = try FileDescriptor.open("/dev/null", .writeOnly)
    let child = try ChildProcess(
      BuiltProgram.path("WormholeTorture"), arguments, errors: nowhere.rawValue)
    #expect(try child.wait(until: soon) == .exited(64))
  }
}
