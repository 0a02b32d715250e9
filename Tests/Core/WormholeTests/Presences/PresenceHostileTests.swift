import Dispatch
import Testing
import WormholeInspection
import WormholePropertyLists
import WormholeSystem
import WormholeTestSupport
import WormholeToolkit

@testable import Wormhole

@Suite("Presence in a directory with foreign entries", .blocking)
struct PresenceHostileTests {
  let directory: TemporaryDirectory
  let presence: Presence

  init() throws {
    directory = try TemporaryDirectory()
    presence = try directory.container().presence("p")
  }

  private var place: String { directory.path + "/presence/p" }

  private func shell(_ command: String) throws { try directory.shell(command) }

  /// Creates a file that this process locks, like a live registration's.
  private func plant(_ id: String, _ bytes: [UInt8]) throws -> SharedDescriptor {
    let file = try FileDescriptor.open(
      place + "/member-\(id).plist", [.writeOnly, .create, .exclusive])
    #expect(try file.tryLock(.exclusive))
    try file.writeAll(bytes)
    return SharedDescriptor(file)
  }

  @Test(
    "trusts none of them, and continues",
    arguments: [
      "mkfifo presence/p/member-1.plist presence/p/entering-1.plist presence/p/last.plist",
      "mkdir presence/p/member-1.plist presence/p/entering-1.plist presence/p/last.plist",
      "ln -s /etc/passwd presence/p/member-1.plist; ln -s /dev/zero presence/p/last.plist",
      "truncate -s 1T presence/p/member-1.plist presence/p/last.plist presence/p/entering-1.plist",
      "head -c 60000 /dev/urandom > presence/p/member-1.plist",
      "touch presence/p/member-.plist presence/p/member-1 presence/p/member-../x.plist || true",
      "touch \"presence/p/member-$(printf 'a\\377b').plist\"",
      "mknod presence/p/member-1.plist c 1 5 || true",
    ])
  func planted(command: String) throws {
    let a = try Participant(directory.path)
    let id = try a.ask("enter p")
    try shell(command)
    #expect(try presence.members().map(\.id) == [id], "\(directory.listing)")
    let own = try presence.enter()
    #expect(try presence.members().map(\.id) == [id, own.id], "\(directory.listing)")
    own.close()
    try a.end()
    #expect(try presence.members() == [], "\(directory.listing)")
    guard case .gone = try presence.status() else {
      Issue.record("\(try presence.status())")
      return
    }
    _ = try presence.container.report()
    _ = try presence.container.sweep()
    try presence.enterExclusively().close()
  }

  @Test("trusts no locked file that is not a whole record of that very file")
  func locked() throws {
    let own = try presence.enter()
    var record = PresenceRecord(isExclusive: false, content: nil)
    let inode = try fileStatus(place).inode
    record.directory = inode
    let good = try record.bytes()
    var keep = [try plant("1", []), try plant("2", Array(good.dropLast(9))), try plant("3", good)]
    record.directory = inode ^ 1
    let elsewhere = record.id
    keep.append(try plant(elsewhere, try record.bytes()))
    #expect(try presence.members().map(\.id) == [own.id], "\(directory.listing)")
    withExtendedLifetime(keep) {}
  }

  @Test("trusts no file of a process whose number was reused or belongs to a dead process")
  func reused() throws {
    let own = try presence.enter()
    let record = PresenceRecord(isExclusive: false, content: nil)
    let inode = try fileStatus(place).inode
    func claim(_ change: (inout PropertyListValue) -> Void) throws -> SharedDescriptor {
      var record = PresenceRecord(isExclusive: false, content: nil)
      record.directory = inode
      var value = try PropertyListValue(bytes: try record.bytes())
      change(&value)
      return try plant(record.id, try value.binaryBytes())
    }
    // The detector detects: an unchanged file is trusted.
    let believed = try claim { _ in }
    #expect(try presence.members().count == 2)
    let keep = [
      try claim { $0["started"] = PropertyListValue(record.identity.startTicks + 1) },
      try claim {
        $0["namespace"] = PropertyListValue(record.identity.namespace ^ 1)
        $0["boot"] = "00000000-0000-0000-0000-000000000000"
      },
    ]
    #expect(try presence.members().count == 2, "\(directory.listing)")
    #expect(try presence.members().first?.id == own.id)
    withExtendedLifetime((believed, keep)) {}
  }

  #if DEBUG
    @Test("is looked at without the kernel's locks, too: a foreign member is unknown then")
    func withoutLocks() throws {
      let own = try presence.enter()
      var record = PresenceRecord(isExclusive: false, content: nil)
      record.directory = try fileStatus(place).inode
      var value = try PropertyListValue(bytes: try record.bytes())
      value["namespace"] = PropertyListValue(record.identity.namespace ^ 1)
      let foreign = try plant(record.id, try value.binaryBytes())
      // Only /proc is opened by a whole path.
      let plan = Faults.Plan { call, _ in call == .openat ? .fail(.accessDenied) : .proceed }
      let members = try Faults.$plan.withValue(plan) { try presence.members() }
      #expect(Set(members.map(\.id)) == [own.id, record.id], "\(directory.listing)")
      #expect(members.first { $0.id == record.id }?.state == .unknown)
      withExtendedLifetime(foreign) {}
    }
  #endif

  // the kernel                 an observer
  // reports a close
  //                            looks: still locked
  // frees the lock, and reports nothing
  //                            looks again
  @Test("is noticed to end although the lock is released only after the look that its close caused")
  func lateUnlock() throws {
    let own = try presence.enter()
    var record = PresenceRecord(isExclusive: false, content: nil)
    record.directory = try fileStatus(place).inode
    let path = place + "/member-\(record.id).plist"
    try FileDescriptor.open(path, [.writeOnly, .create]).writeAll(try record.bytes())
    // Open for reading, so that its own close is no event.
    let holder = try FileDescriptor.open(path, .readOnly)
    #expect(try holder.tryLock(.exclusive))
    let seen = Heard<[String]>()
    let observation = try presence.observe(startsWithCurrent: true, on: .global()) {
      seen.add($0.map(\.id))
    }
    try eventually("both are present") { seen.all.last == [own.id, record.id] }
    own.close()
    try eventually("one is left") { seen.all.last == [record.id] }
    try holder.close()
    try eventually("none is") { seen.all.last == [] }
    observation.cancel()
  }

  @Test("refuses a directory with more files than the limit")
  func crowded() throws {
    try presence.enter().close()
    try directory.shell("seq 1 10001 | xargs touch", in: "presence/p", within: .seconds(180))
    let error = #expect(throws: WormholeError.self) { try presence.members() }
    #expect(error?.code == .tooLarge)
  }

  @Test("refuses content that no reader would accept")
  func content() throws {
    for content: PropertyListValue in [
      .string(longText(Presence.maximumBytes)),
      .array(Array(repeating: true, count: 20_000)),
    ] {
      let error = #expect(throws: WormholeError.self) { try presence.enter(content: content) }
      #expect(error?.code == .unsupportedValue)
    }
    #expect(try presence.members() == [])
    let large = try presence.enter(content: .string(longText(60_000)))
    #expect(try presence.members().first?.content?.stringValue?.utf8.count == 60_000)
    large.close()
  }

  @Test("reports a full disk, and leaves nothing behind")
  func full() throws {
    #if DEBUG
      let plan = Faults.Plan { call, _ in call == .write ? .fail(.noSpace) : .proceed }
      let error = #expect(throws: WormholeError.self) {
        try Faults.$plan.withValue(plan) { try presence.enter() }
      }
      #expect(error?.code == .noSpace)
      #expect(try presence.members() == [])
      #expect(try FileDescriptor.open(place, .readOnly).entries().isEmpty, "\(directory.listing)")
      let registration = try presence.enter()
      Faults.$plan.withValue(plan) { registration.close() }
      #expect(try presence.members() == [])
      #expect(try FileDescriptor.open(place, .readOnly).entries().isEmpty, "\(directory.listing)")
    #endif
  }
}
