import Dispatch
import FoundationEssentials
import Synchronization
import Testing
import WormholePropertyLists
import WormholeSystem
import WormholeTestSupport

@testable import Wormhole

/// A small file system in memory, with a command that uses it up.
struct SmallDisk: Sendable, CustomTestStringConvertible {
  let testDescription: String
  let options: String
  let fill: String
  let remedy: String

  static let all = [
    SmallDisk(
      testDescription: "no space", options: "size=64k",
      fill: "cat /dev/zero >disk/filling", remedy: "(df)"),
    SmallDisk(
      testDescription: "no inodes", options: "nr_inodes=40",
      fill: "i=0; while : >disk/filling-$i; do i=$((i + 1)); done", remedy: "(df -i)"),
  ]
}

@Suite("When the file system is full", .blocking, .enabled(if: MountNamespace.isPossible))
struct FullDiskTests {
  @Test(
    "every change fails with its reason, nothing is damaged, and all works when there is room",
    arguments: SmallDisk.all)
  func full(_ disk: SmallDisk) throws {
    let mounts = try MountNamespace()
    try mounts.run("mkdir disk && mount -t tmpfs -o mode=700,\(disk.options) tmpfs disk")
    let container = try SharedContainer(path: mounts.inside + "/disk")
    let seats = container.value("seats")
    try seats.replace(with: 1)
    try container.value("other").replace(with: "intact")
    let before = try mounts.run("cd disk && find . ! -name 'filling*' | sort")
    let heard = Mutex<[PropertyListValue?]>([])
    let observation = try seats.observe(on: DispatchQueue(label: "full")) { snapshot in
      do {
        let value = try snapshot.propertyList()
        heard.withLock { $0.append(value) }
      } catch {
        Issue.record(error)
      }
    }
    try mounts.run("(\(disk.fill)) 2>/dev/null || true")

    try expectRefused(seats, disk)
    try expectRefused(container.value("new"), disk)
    #expect(try seats.read() == 1 && container.value("other").read() == "intact")
    #expect(try container.value("new").read() == nil)

    try mounts.run("rm disk/filling*")
    let after = try mounts.run("cd disk && find . ! -path './values/new*' | sort")
    #expect(after == before, "something was left behind")
    for identifier in ["seats", "new"] {
      try container.value(identifier).replace(with: 2)
      try container.value(identifier).update(durability: .durable) { $0 = 3 }
      #expect(try container.value(identifier).read() == 3)
    }
    try eventually("the observer gets the last value") { heard.withLock { $0.last == .some(3) } }
    #expect(heard.withLock { $0.allSatisfy { $0 == 2 || $0 == 3 } })
    observation.cancel()
  }

  // process A                        process B
  // remove, stopped before call n
  //                                  remove
  //
  // Not this process: a child that another test starts has what was open here until it becomes another
  // program, and the inode of a file that was removed meanwhile is not free.
  @Test("a removal needs no inode, and none to take the lease of a stopped process over")
  func removal() throws {
    let mounts = try MountNamespace()
    try mounts.run("mkdir disk && mount -t tmpfs -o mode=700,nr_inodes=40 tmpfs disk")
    let path = mounts.inside + "/disk"
    let value = try SharedContainer(path: path).value("k")
    let other = try Participant(path)
    func fill() throws {
      try mounts.run("rm -f disk/filling*")
      try #require(other.ask("set k 1") == "done")
      try mounts.run("(\(SmallDisk.all[1].fill)) 2>/dev/null || true")
    }
    try fill()
    let calls = try Participant(path).calls(of: "remove k")
    #expect(try value.read() == nil && calls > 5)
    for place in stride(from: TriedSteps.first, to: calls, by: TriedSteps.stride) {
      try fill()
      let late = try Participant(path)
      try late.tell("stop \(place) remove k")
      try late.waitUntilStopped()
      #expect(try other.ask("remove k") == "done")
      #expect(try value.read() == nil, "stopped before call \(place)")
      try late.send(.continue)
      _ = try late.answer()
      try late.end()
    }
    try fill()
    try other.end()
    let refused = #expect(throws: WormholeError.self) { try value.update { $0 = 2 } }
    #expect(try refused?.code == .noSpace && value.read() == 1)
  }

  @Test("a queue is drained without an inode by a worker that has joined; no other one can join")
  func draining() throws {
    let mounts = try MountNamespace()
    try mounts.run("mkdir disk && mount -t tmpfs -o mode=700,nr_inodes=60 tmpfs disk")
    let path = mounts.inside + "/disk"
    let sender = try SharedContainer(path: path).queue("q").sender("s")
    for number in [1, 2] as [PropertyListValue] { try sender.enqueue(number) }
    let (a, b) = (try Participant(path), try Participant(path))
    #expect(try a.ask("queue-join q") == "done")
    try mounts.run("(\(SmallDisk.all[1].fill)) 2>/dev/null || true")
    #expect(try b.ask("queue-join q").hasPrefix("error noSpace"))
    for number in 1...2 {
      #expect(try a.ask("queue-next q") == "s \(number)")
      #expect(try a.ask("queue-acknowledge q") == "done")
    }
    try a.end()
    try mounts.run("rm -f disk/filling*")
    try sender.enqueue(3)
    #expect(try b.ask("queue-join q") == "done" && b.ask("queue-next q") == "s 3")
  }

  @Test("a file for a session's delegate waits until there is room for its name")
  func receivedFile() throws {
    let mounts = try MountNamespace()
    try mounts.run("mkdir disk && mount -t tmpfs -o mode=700,nr_inodes=200 tmpfs disk")
    let path = mounts.inside + "/disk"
    let (phone, watch) = (try Participant(path), try Participant(path))
    #expect(try phone.ask("session-start phone watch full 20") == "activated")
    #expect(try watch.ask("session-start watch watch full 20") == "activated")
    #expect(try phone.ask("events begin") == "done")
    // What it needs to take files is there once it has taken one.
    try mounts.run("printf earlier >trailer; echo content >film")
    #expect(try watch.ask("session-file \(mounts.inside)/trailer") == "done")
    #expect(try phone.ask("session-await file").hasPrefix("file trailer earlier"))
    #expect(try watch.ask("session-await sent") == "sent trailer -")
    // It is sent before its last names are gone, whose inodes would be room for the other file.
    try eventually("nothing is left of it") {
      let rest = "\\( -path '*/taken/*/attachment-*' -o -path '*/inbox/*/*' \\)"
      return try mounts.run("find disk/own \(rest) | wc -l") == "0"
    }
    let failures = try phone.ask("events failure")
    try phone.send(.stop)
    try phone.waitUntilStopped()
    #expect(try watch.ask("session-file \(mounts.inside)/film") == "done")
    try eventually("it is stored") {
      try mounts.run("find disk/own/queues -path '*/pending/*' | wc -l") == "1"
    }
    // What its sender removes in the end would be room for the file.
    try eventually("its sender has ended") {
      let rest = "\\( -path '*/pending/*' -o -path '*/taken/*' -type f -o -name 'member-*' \\)"
      return try mounts.run("find disk/own -path '*outgoing/*' \(rest) | wc -l") == "0"
    }
    try mounts.run("(\(SmallDisk.all[1].fill)) 2>/dev/null || true")
    try phone.send(.continue)
    try eventually("it is taken") {
      try mounts.run("find disk/own/queues -path '*/taken/*/attachment-*' | wc -l") != "0"
    }
    try eventually("there is no room") { try phone.ask("events failure") != failures }
    try mounts.run("rm disk/filling*")
    #expect(try phone.ask("session-await file").hasPrefix("file film content"))
    #expect(try watch.ask("session-await sent") == "sent film -")
  }

  /// Every kind of change needs more room than there is.
  private func expectRefused(_ value: PlainValue, _ disk: SmallDisk) throws {
    let large = PropertyListValue.data(Data(repeating: 7, count: 100_000))
    let changes: [(String, () throws -> Void)] = [
      ("replace", { try value.replace(with: .string(String(repeating: "x", count: 9_000))) }),
      ("replace by much", { try value.replace(with: large) }),
      ("durable replace", { try value.replace(with: large, durability: .durable) }),
      ("update", { try value.update { $0 = large } }),
    ]
    for (name, change) in changes {
      let error = try #require(throws: WormholeError.self, "\(name)") { try change() }
      #expect(error.code == .noSpace && error.path == value.path, "\(name): \(error)")
      #expect("\(error)".contains(disk.remedy), "\(name): \(error)")
    }
  }
}

@Suite("When a process may write small files only", .blocking)
struct FileSizeLimitTests {
  // The limit is 4 blocks of the shell: 2 or 4 KiB. A program that ignores SIGXFSZ continues.
  @Test("a larger value is refused with its reason, and smaller ones succeed")
  func limited() throws {
    let place = try TemporaryDirectory()
    let program = try BuiltProgram.path("participant")
    let limited = try Participant(
      program: "sh", ["-c", "trap '' XFSZ; ulimit -f 4; exec '\(program)' '\(place.path)'"])
    #expect(try limited.ask("set seats 1") == "done")
    for length in [5_000, 100_000] {
      let answer = try limited.ask("text seats \(length)")
      #expect(answer.hasPrefix("error tooLarge ") && answer.contains("ulimit -f"), "\(answer)")
      #expect(answer.contains(place.path + "/values/seats/value.plist"), "\(answer)")
    }
    #expect(try limited.ask("read seats") == "\(PropertyListValue.integer(1))")
    #expect(try limited.ask("add seats 1") == "done")
    #expect(try place.container().value("seats").read() == 2)
    #expect(!place.listing.contains("prepared-"), "\(place.listing)")
  }
}
