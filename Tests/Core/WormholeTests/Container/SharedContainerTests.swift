import FoundationEssentials
import Synchronization
import Testing
import Wormhole
import WormholePropertyLists
import WormholeSystem
import WormholeTestSupport
import WormholeToolkit

@Suite("A container", .blocking)
struct SharedContainerTests {
  private func mode(_ path: String) throws -> UInt32 { try fileStatus(path).permissions }

  private func chmod(_ path: String, _ permissions: UInt32) throws {
    try FileDescriptor.open(path, .readOnly).setPermissions(permissions)
  }

  private func code(_ body: () throws -> Void) -> WormholeError.Code? {
    do {
      try body()
      return nil
    } catch let error as WormholeError {
      return error.code
    } catch {
      return nil
    }
  }

  @Test("writes its version once, private to its user")
  func isCreated() throws {
    let directory = try TemporaryDirectory()
    _ = try directory.container()
    let first = try fileStatus(directory.path + "/container.plist")
    _ = try directory.container()
    #expect(try fileStatus(directory.path + "/container.plist") == first)
    #expect(first.permissions == 0o600)
    let container = try directory.container()
    try container.value("x").replace(with: 1)
    for path in ["", "/values", "/values/x", "/values/x/lease", "/values/x/lease/held"] {
      #expect(try mode(directory.path + path) == 0o700, "\(path) \(directory.listing)")
    }
    #expect(try mode(directory.path + "/values/x/value.plist") == 0o600)
  }

  @Test("can be shared with a Unix group on request: 2770 and 660, whatever the umask is")
  func isSharedWithGroup() throws {
    let directory = try TemporaryDirectory()
    try chmod(directory.path, 0o2770)
    let container = try SharedContainer(path: directory.path, access: .group)
    try container.value("x").replace(with: 1)
    #expect(try mode(directory.path + "/values/x/lease/held") == 0o2770)
    #expect(try mode(directory.path + "/values/x/value.plist") == 0o660)
    #expect(code { _ = try directory.container() } == .containerUnsafe)
  }

  @Test(
    "that lets others in is refused with its mode", arguments: [0o755, 0o750, 0o701, 0o777, 0o1777])
  func looseModes(mode: Int) throws {
    let directory = try TemporaryDirectory()
    for isContainer in [false, true] {
      try chmod(directory.path, 0o700)
      if isContainer { _ = try directory.container() }
      try chmod(directory.path, UInt32(mode))
      let error = #expect(throws: WormholeError.self) { try directory.container() }
      #expect(error?.code == .containerUnsafe)
      #expect(error?.description.contains(String(mode, radix: 8)) == true)
      // A directory that is not a container may have the right mode for its purpose, such as a
      // project.
      let advice = isContainer ? "chmod 0700 '\(directory.path)'" : "mkdir -m 0700 DIRECTORY"
      #expect(error?.remedy?.hasSuffix(advice) == true, "\(error?.description ?? "")")
      if mode == 0o1777, !isContainer {
        // As /tmp, whose mode is everybody's.
        #expect(error?.remedy?.contains("chmod") == false, "\(error?.description ?? "")")
      }
    }
  }

  @Test("that is missing, a file or a symbolic link is refused")
  func wrongKinds() throws {
    let directory = try TemporaryDirectory()
    #expect(code { _ = try SharedContainer(path: directory.path + "/none") } == .containerMissing)
    let file = try FileDescriptor.open(directory.path + "/file", [.writeOnly, .create])
    try file.close()
    #expect(code { _ = try SharedContainer(path: directory.path + "/file") } == .containerUnsafe)
    try makeDirectory(directory.path + "/real")
    let link = try ChildProcess("ln", ["-s", "real", directory.path + "/link"])
    #expect(try link.wait(until: soon) == .exited(0))
    #expect(code { _ = try SharedContainer(path: directory.path + "/link") } == .containerUnsafe)
  }

  @Test(
    "of another user is refused", .enabled(if: Program.effectiveUser == 0, "needs root to chown"))
  func foreignOwner() throws {
    let directory = try TemporaryDirectory()
    let chown = try ChildProcess("chown", ["65534", directory.path])
    #expect(try chown.wait(until: soon) == .exited(0))
    #expect(code { _ = try directory.container() } == .containerUnsafe)
  }

  @Test("of a newer format is refused, never guessed at")
  func newerFormat() throws {
    let directory = try TemporaryDirectory()
    let file = try FileDescriptor.open(directory.path + "/container.plist", [.writeOnly, .create])
    try file.writeAll(try (["formatVersion": 3] as PropertyListValue).binaryBytes())
    #expect(code { _ = try directory.container() } == .formatTooNew)
  }

  @Test(
    "whose version cannot be read is refused",
    arguments: [
      "", "garbage", "<plist/>", "<plist version=\"1.0\"><dict/></plist>",
      "<plist version=\"1.0\"><dict><key>formatVersion</key><integer>1</integer></dict></plist>",
    ])
  func damagedFormat(content: String) throws {
    let directory = try TemporaryDirectory()
    let file = try FileDescriptor.open(directory.path + "/container.plist", [.writeOnly, .create])
    try file.writeAll(Array(content.utf8))
    #expect(code { _ = try directory.container() } == .damaged)
  }

  @Test("of a group lives where the XDG specification says, and is created if it is missing")
  func groupLocation() throws {
    let directory = try TemporaryDirectory()
    let participant = try Participant(
      "group:group.com.example/å", environment: ["XDG_DATA_HOME=\(directory.path)/data"])
    #expect(try participant.ask("set x 1") == "done")
    let path = directory.path + "/data/app-groups/group.com.example%2F%C3%A5"
    #expect(try mode(path) == 0o700)
    #expect(try SharedContainer(path: path).value("x").read() == 1)
  }

  @Test("lists its identifiers, long ones in full, and no foreign entries")
  func identifiers() throws {
    let directory = try TemporaryDirectory()
    let container = try directory.container()
    #expect(try container.valueIdentifiers() == [])
    let identifiers = ["a", "", "../x", String(repeating: "ä", count: 5_000)]
    for identifier in identifiers { try container.value(identifier).replace(with: 1) }
    try makeDirectory(directory.path + "/values/not ours")
    #expect(Set(try container.valueIdentifiers()) == Set(identifiers))
    for identifier in identifiers {
      #expect(try container.value(identifier).read() == 1)
    }
  }

  /// Creates a container whose value "x" is 1, moves it to "old", and puts a new directory in its
  /// place.
  private func replacedContainer(
    in directory: TemporaryDirectory
  ) throws -> (container: SharedContainer, path: String) {
    let inside = directory.path + "/c"
    try makeDirectory(inside)
    let container = try SharedContainer(path: inside)
    try container.value("x").replace(with: 1)
    try rename(inside, at: Directory.current, to: directory.path + "/old", at: Directory.current)
    try makeDirectory(inside)
    return (container, inside)
  }

  @Test("notices within its next operations that its directory was replaced by another")
  func isReplaced() throws {
    let directory = try TemporaryDirectory()
    let (container, inside) = try replacedContainer(in: directory)
    try eventually("the new directory is used") { try container.value("x").read() == nil }
    try container.value("x").replace(with: 2)
    #expect(try SharedContainer(path: inside).value("x").read() == 2)
    #expect(try SharedContainer(path: directory.path + "/old").value("x").read() == 1)
  }

  @Test("finds at once a value that exists only in the replacement of its directory")
  func missesNothing() throws {
    let directory = try TemporaryDirectory()
    let (container, inside) = try replacedContainer(in: directory)
    try SharedContainer(path: inside).value("y").replace(with: 2)
    #expect(try container.value("y").read() == 2)
  }

  @Test("leaves nothing behind if two create it at once, or if the disk is full")
  func madeTwice() throws {
    #if DEBUG
      let directory = try TemporaryDirectory()
      let full = Faults.Plan { call, _ in call == .write ? .fail(.noSpace) : .proceed }
      #expect(
        code { try Faults.$plan.withValue(full) { _ = try directory.container() } } == .noSpace)
      #expect(try FileDescriptor.open(directory.path, .readOnly).entries().isEmpty)
      let path = directory.path + "/container.plist"
      let first = Mutex<FileStatus?>(nil)
      let second = Faults.Plan { call, _ in
        guard call == .renameat2 else { return .proceed }
        Faults.$plan.withValue(nil) {
          do {
            _ = try directory.container()
            let status = try fileStatus(path)
            first.withLock { $0 = status }
          } catch {
            Issue.record(error)
          }
        }
        return .proceed
      }
      try Faults.$plan.withValue(second) { _ = try directory.container() }
      #expect(
        try FileDescriptor.open(directory.path, .readOnly).entries().map(\.name.text)
          == ["container.plist"])
      #expect(try fileStatus(path) == first.withLock { $0 }, "the first one stays")
    #endif
  }

  @Test("refuses a long identifier's directory that names another identifier")
  func collision() throws {
    let directory = try TemporaryDirectory()
    let value = try directory.container().value(String(repeating: "x", count: 300))
    try value.replace(with: 1)
    let identifier = value.path.dropLast("value.plist".count) + "identifier"
    let file = try FileDescriptor.open(String(identifier), [.writeOnly, .truncate])
    try file.writeAll(Array("other".utf8))
    #expect(code { try value.replace(with: 2) } == .nameCollision)
  }

  @Test("that begins to let others in while it is open is refused within a second")
  func loosened() throws {
    let directory = try TemporaryDirectory()
    let container = try directory.container()
    try chmod(directory.path, 0o755)
    try eventually("it is refused") {
      code { _ = try container.value("x").read() } == .containerUnsafe
    }
  }

  @Test("shared with a group is refused to others", arguments: [0o2775, 0o777, 0o2777])
  func looseGroupModes(mode: Int) throws {
    let directory = try TemporaryDirectory()
    try chmod(directory.path, UInt32(mode))
    #expect(
      code { _ = try SharedContainer(path: directory.path, access: .group) } == .containerUnsafe)
  }

  @Test(
    "shared with a group that the user is not in is refused",
    .enabled(if: Program.effectiveUser == 0, "needs root to chown"))
  func foreignGroup() throws {
    let directory = try TemporaryDirectory()
    let chown = try ChildProcess("chown", ["65534:54321", directory.path])
    #expect(try chown.wait(until: soon) == .exited(0))
    try chmod(directory.path, 0o2770)
    #expect(
      code { _ = try SharedContainer(path: directory.path, access: .group) } == .containerUnsafe)
  }

  @Test("whose version is not a file is refused")
  func plantedFormat() throws {
    let directory = try TemporaryDirectory()
    try makeDirectory(directory.path + "/container.plist")
    #expect(code { _ = try directory.container() } == .damaged)
  }

  @Test("ignores a relative XDG_DATA_HOME, as the specification says")
  func relativeDataHome() throws {
    let directory = try TemporaryDirectory()
    let participant = try Participant(
      "group:g", environment: ["XDG_DATA_HOME=data", "HOME=\(directory.path)"])
    #expect(try participant.ask("set x 1") == "done")
    let path = directory.path + "/.local/share/app-groups/g"
    #expect(try SharedContainer(path: path).value("x").read() == 1)
  }

  /// The name used to end the process, because XML has no way to write some of its characters.
  @Test("may be of a group with any name", arguments: ["a\0b", "\u{1}", "\u{FFFE}", "a/b", ""])
  func anyGroup(name: String) throws {
    let directory = try TemporaryDirectory()
    for _ in 0..<2 {
      let container = try SharedContainer(path: directory.path, group: name)
      try container.value("k").replace(with: 1)
      #expect(try container.value("k").read() == 1)
    }
  }
}
