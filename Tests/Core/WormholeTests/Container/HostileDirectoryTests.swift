import FoundationEssentials
import Testing
import WormholeInspection
import WormholePropertyLists
import WormholeSystem
import WormholeTestSupport
import WormholeToolkit

@testable import Wormhole

@Suite("A value in a directory with foreign entries", .blocking)
struct HostileDirectoryTests {
  let directory: TemporaryDirectory
  let container: SharedContainer

  init() throws {
    directory = try TemporaryDirectory()
    container = try directory.container()
  }

  private func listed() -> [String]? {
    do { return try container.valueIdentifiers() } catch {
      Issue.record(error)
      return nil
    }
  }

  private func shell(_ command: String) throws { try directory.shell(command) }

  @Test("is changed although directories with any name were planted in its lease")
  func oddNames() throws {
    let value = container.value("k")
    try value.replace(with: 1)
    let long = String(repeating: "€", count: 85)
    for name in ["\"$(printf 'a\\377b')\"", "'\(long)'"] {
      try shell("mkdir values/k/lease/held/\(name)")
      #expect(throws: Never.self) { try value.replace(with: 2, until: .now + .seconds(1)) }
      try shell("rm -rf values/k/lease/held/\(name)")
      try shell("mkdir -p values/k/lease/broken-1/\(name)")
      // Content that is prepared before the lease: then leftovers are looked for.
      let large = PropertyListValue.data(Data(count: PreparedContent.worthwhileBytes))
      #expect(throws: Never.self) { try value.replace(with: large, until: .now + .seconds(1)) }
      try shell("test ! -e values/k/lease/broken-1")
      try shell("rm -rf values/k/lease/broken-1")
    }
  }

  @Test("lists its identifiers, whatever was planted among the long ones")
  func listing() throws {
    try container.value("k").replace(with: 1)
    let zeros = String(repeating: "0", count: 63)
    try shell("touch values/a%.\(zeros)0")
    #expect(listed() == ["k"])
    try shell("mkdir values/a%.\(zeros)1; ln -s /etc/passwd values/a%.\(zeros)1/identifier")
    #expect(listed() == ["k"])
    try shell("mkdir values/a%.\(zeros)2; printf k > values/a%.\(zeros)2/identifier")
    #expect(listed() == ["k"])
  }

  @Test("is changed durably, whatever the times of its directories")
  func times() throws {
    let memory = try TemporaryDirectory(under: "/dev/shm")
    let container = try memory.container()
    try container.value("k").replace(with: 1)
    let values = try FileDescriptor.open(memory.path + "/values", [.readOnly, .directory])
    try values.setModified(seconds: .max, nanoseconds: 0)
    try container.value("k").replace(with: 2, durability: .durable)
  }

  @Test("is inspected, whatever the times of its entries")
  func oldTimes() throws {
    let memory = try TemporaryDirectory(under: "/dev/shm")
    let container = try memory.container()
    let file = try FileDescriptor.open(
      memory.path + "/.container-1a2b3c4d5e6f.plist", [.writeOnly, .create])
    try file.setModified(seconds: .min, nanoseconds: 0)
    _ = try container.report()
  }
}
