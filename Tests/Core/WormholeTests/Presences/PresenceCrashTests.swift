import Dispatch
import FoundationEssentials
import Testing
import WormholeInspection
import WormholePropertyLists
import WormholeSystem
import WormholeTestSupport
import WormholeToolkit

@testable import Wormhole

@Suite("Presence, whatever ends a process or replaces its directory,", .blocking)
struct PresenceCrashTests {
  let directory: TemporaryDirectory
  let presence: Presence

  init() throws {
    directory = try TemporaryDirectory()
    presence = try directory.container().presence("p")
  }

  private func participant() throws -> Participant { try Participant(directory.path) }

  private var place: String { directory.path + "/presence/p" }

  private func names(_ place: String? = nil) throws -> [String] {
    try TemporaryDirectory.names(of: place ?? self.place)
  }

  private func shell(_ command: String) throws { try directory.shell(command) }

  @Test(
    "has no process that was killed before any of its steps, and nothing of it after the next",
    arguments: ["enter p", "alone p"], [false, true])
  func killedAtEveryStep(command: String, isFirst: Bool) throws {
    try TriedSteps.each(moreThan: 15) { step in
      if isFirst { try shell("rm -rf presence") }
      guard try participant().dies(of: "die \(step) \(command)", answering: nil) else {
        return false
      }
      #expect(try presence.members() == [], "killed before call \(step): \(directory.listing)")
      let next = try presence.enterExclusively(until: .now + .seconds(5))
      #expect(try presence.members().map(\.id) == [next.id], "\(step): \(directory.listing)")
      next.close()
      #expect(
        Set(try names()).subtracting(["lease"]) == ["exclusive.plist", "last.plist"],
        "killed before call \(step): \(directory.listing)")
      #expect(try presence.container.report().leftovers.isEmpty, "\(directory.listing)")
      return true
    }
  }

  @Test("has no process that was killed while leaving")
  func killedLeaving() throws {
    let counting = try participant()
    _ = try counting.ask("enter p")
    let calls = try counting.calls(of: "leave p")
    #expect(calls > 5)
    for step in 0..<calls {
      let victim = try participant()
      let id = try victim.ask("enter p")
      #expect(try victim.dies(of: "die \(step) leave p"))
      guard case .gone(let last, _) = try presence.status() else {
        Issue.record("killed before call \(step): \(try presence.status())")
        continue
      }
      #expect(last?.id == id, "killed before call \(step): \(directory.listing)")
      try presence.enter().close()
      #expect(try names() == ["last.plist"], "killed before call \(step): \(directory.listing)")
    }
  }

  @Test("is reported with its members and its dead, and swept of these by a sweep")
  func inspected() throws {
    let a = try participant()
    let b = try participant()
    _ = try a.ask("enter p")
    _ = try b.ask("enter p")
    try b.end()
    try shell("cp presence/p/member-* . && mv member-* presence/p/entering-12-34.plist || true")
    try FileDescriptor.open(place + "/entering-1-2.plist", [.writeOnly, .create]).close()
    let container = presence.container
    let before = try container.report()
    #expect(before.names.presences.map(\.name) == ["p"])
    #expect(before.names.presences.first?.members.map(\.processID) == [a.processID])
    #expect(
      before.leftovers.map(\.kind) == [.abandonedPresence, .abandonedPresence],
      "\(before.leftovers) \(before.failures) \(directory.listing)")
    #expect(try names().count == 3, "a report only looks")
    #expect(try container.sweep().failures.isEmpty)
    #expect(try container.report().leftovers.isEmpty, "\(directory.listing)")
    #expect(try presence.members().map(\.processID) == [a.processID])
  }

  @Test("shows no process in a copy of a container, whether of files or of links")
  func copied() throws {
    let a = try participant()
    _ = try a.ask("enter p")
    for (option, copy) in [("-a", "files"), ("-al", "links")] {
      try shell("cd .. && cp \(option) '\(directory.path)' '\(directory.path)-\(copy)'")
      let path = directory.path + "-" + copy
      defer {
        do { try shell("rm -r '\(path)'") } catch { Issue.record(error) }
      }
      let other = try SharedContainer(path: path).presence("p")
      #expect(try other.members() == [], "\(copy)")
      guard case .gone = try other.status() else {
        Issue.record("\(try other.status())")
        continue
      }
    }
    #expect(try presence.members().map(\.processID) == [a.processID])
  }

  /// A present process may create its file again before its directory is removed, which then fails
  /// because it is not empty.
  private static func removing(_ place: String) -> String { "until rm -rf \(place); do :; done" }

  @Test(
    "lasts although its file, its directory or the whole container is removed or replaced",
    .waiting)
  func replaced() throws {
    let a = try participant()
    let id = try a.ask("enter p")
    func isBack() throws {
      try eventually("it is present again: \(directory.listing)") {
        try presence.members().map(\.id) == [id]
      }
    }
    for command in [
      "rm presence/p/member-*", Self.removing("presence/p"), "mv presence/p aside",
      Self.removing("presence"), "mv presence aside2 && mkdir -m 700 -p presence/p",
      "cp -a presence x; \(Self.removing("presence")); mv x presence",
    ] {
      let before = try fileStatus(place + "/member-\(id).plist")
      try shell(command)
      try eventually("it is made again after \(command): \(directory.listing)") {
        do throws(Errno) {
          return try !fileStatus(place + "/member-\(id).plist").isSameFile(as: before)
        } catch {
          guard error == .noSuchFile else { throw error }
          return false
        }
      }
      try isBack()
    }
    try a.end()
    #expect(try presence.members() == [])
  }

  @Test("of an exclusive process outlives its directory, too")
  func exclusiveReplaced() throws {
    let a = try participant()
    let id = try a.ask("alone p")
    try shell(Self.removing("presence"))
    try eventually("it is present again: \(directory.listing)") {
      try presence.members().map(\.id) == [id]
    }
    #expect(try a.ask("confirm p") == "done")
    #expect(throws: WormholeError.self) { try presence.enterExclusively(until: .now) }
  }

  // A taker of the role that dies before it moves the old registration aside.
  @Test("of an exclusive process ends when the role names another live one")
  func roleOfAnother() throws {
    let first = try presence.enterExclusively()
    let second = try presence.enter()
    try first.confirm()
    try presence.place.role.replace(with: ["id": .string(second.id)])
    let error = #expect(throws: WormholeError.self) { try first.confirm() }
    #expect(error?.code == .leaseLost)
    #expect(error?.holder?.processID == Program.processID)
    #expect(try presence.members().map(\.id) == [second.id], "\(directory.listing)")
  }

  @Test("reads the last process from a foreign record that follows the format")
  func frozen() throws {
    try shell("mkdir -p -m 700 presence/p")
    let text = """
      <?xml version="1.0" encoding="UTF-8"?>
      <plist version="1.0"><dict>
      <key>id</key><string>1f-2a</string><key>pid</key><integer>31</integer>
      <key>started</key><integer>7</integer><key>namespace</key><integer>9</integer>
      <key>boot</key><string>b</string><key>program</key><string>ticketd</string>
      <key>since</key><date>2026-01-02T03:04:05Z</date><key>uptime</key><integer>5</integer>
      <key>directory</key><integer>3</integer><key>exclusive</key><true/>
      <key>content</key><array><integer>1</integer></array>
      <key>ended</key><date>2026-01-02T03:04:06Z</date>
      </dict></plist>
      """
    try FileDescriptor.open(place + "/last.plist", [.writeOnly, .create]).writeAll(
      Array(text.utf8))
    guard case .gone(let last, let ended) = try presence.status() else {
      Issue.record("\(try presence.status())")
      return
    }
    #expect(last?.id == "1f-2a" && last?.processID == 31 && last?.program == "ticketd")
    #expect(last?.isExclusive == true && last?.content == [1])
    #expect(try #require(ended) == #require(last?.since).addingTimeInterval(1))
  }

  @Test("reports the processes in a directory that replaced the watched one")
  func observersOfReplaced() async throws {
    try presence.enter().close()
    let seen = Heard<[String]>()
    let observation = try presence.observe(on: .global()) { seen.add($0.map(\.id)) }
    try shell("rm -r presence")
    let a = try participant()
    let id = try a.ask("enter p")
    try eventually("it is reported") { seen.all.last == [id] }
    try a.end()
    try eventually("its death, too") { seen.all.last == [] }
    observation.cancel()
  }

  // Without a /proc of its own, its number there is that of another process, which may be stopped.
  @Test(
    "of a process in another namespace of process numbers is noticed, and so is its end",
    arguments: [(["--mount-proc"], "running"), ([], "unknown")])
  func namespace(_ table: [String], _ own: String) throws {
    let asRoot = Program.effectiveUser == 0 ? [] : ["--map-root-user"]
    let program = try BuiltProgram.path("participant")
    let inside: Participant
    let id: String
    do {
      inside = try Participant(
        program: "unshare",
        asRoot + table + ["--pid", "--fork", "--kill-child", program, directory.path])
      id = try inside.ask("enter p")
    } catch let error as Participant.Failure {
      print("no namespace to be had: \(error)")
      return
    }
    let member = try #require(try presence.members().first)
    #expect(member.id == id)
    #expect(member.state == .unknown, "its number says nothing here")
    #expect(try presence.status() == .unknown(member))
    let b = try participant()
    let other = try b.ask("enter p")
    #expect(try inside.ask("members p") == "\(member.processID):\(own) \(b.processID):unknown")
    #expect(try presence.members().map(\.id) == [id, other])
    try inside.end()
    try eventually("it is gone") { try presence.members().map(\.id) == [other] }
  }
}
