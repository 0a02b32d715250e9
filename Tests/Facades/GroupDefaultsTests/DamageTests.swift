import FoundationEssentials
import GroupDefaults
import Testing
import Wormhole
import WormholePropertyLists
import WormholeSystem
import WormholeTestSupport

@Suite("Defaults whose file cannot be used", .blocking, .bothEngines)
struct DamageTests {
  let scene: DefaultsScene

  init() throws { scene = try DefaultsScene() }

  private func plant(_ bytes: [UInt8]) throws {
    // Durable, so that nothing is kept that would stand in for an empty file.
    try scene.container.own.value("defaults").replace(withBytes: bytes, durability: .durable)
  }

  static let damages: [(String, [UInt8])] = [
    ("garbage", Array("garbage".utf8)), ("nothing", []),
    ("half a file", Array("bplist00".utf8) + [0xD1, 1]),
    ("an array", Array("<plist version=\"1.0\"><array/></plist>".utf8)),
  ]

  @Test("are reported as damaged at every read, and never overwritten", arguments: damages)
  func damaged(_ name: String, _ bytes: [UInt8]) throws {
    // On etcd nothing is no value.
    guard !bytes.isEmpty || TestEngine.current == .directory else { return }
    let defaults = scene.defaults
    let key = "damaged-\(UInt64.random(in: .min ... .max))"
    defaults.register(defaults: [key: "registered"])
    defaults.set("stored", forKey: key)
    try plant(bytes)
    // A getter reports the damage and continues with the search list; a throwing one throws.
    #expect(defaults.string(forKey: key) == "registered")
    #expect(defaults.integer(forKey: "absent") == 0)
    let path = try scene.file
    let reported = scene.reported()
    #expect(reported.count == 2 && reported.allSatisfy { $0.contains(path) }, "\(reported)")
    let remedy =
      TestEngine.current == .directory ? "put it aside with quarantine()" : "etcdctl get"
    #expect(reported.allSatisfy { $0.contains(remedy) }, "\(reported)")
    let refused = #expect(throws: WormholeError.self) { try defaults.read(forKey: key) }
    #expect(refused?.code == .damaged && refused?.path == path)
    // No kind of write replaces an unreadable file.
    defaults.set(1, forKey: key)
    defaults.removeObject(forKey: key)
    #expect(scene.reported().count == 2)
    #expect(throws: WormholeError.self) { try defaults.write(1, forKey: key) }
    #expect(throws: WormholeError.self) { try defaults.update(forKey: key) { $0 = 1 } }
    #expect(throws: WormholeError.self) {
      try defaults.importSuite(from: PropertyListValue.dictionary([:]).binaryData(), .replacing)
    }
    #expect(try scene.container.own.value("defaults").snapshot().bytes() == bytes)
    // In the quarantine it is out of the way but still exists.
    if let aside = try scene.putAside() {
      let file = try FileDescriptor.open(aside, .readOnly)
      #expect(try file.readToEnd(expectedBytes: 0, maximumBytes: 1_000) == bytes)
    }
    defaults.set(2, forKey: key)
    #expect(defaults.integer(forKey: key) == 2 && scene.reported() == [])
  }

  @Test(
    "refuse content that no reader would accept before it is published",
    .onlyDirectories("no engine is asked"))
  func unacceptable() throws {
    var deep = PropertyListValue.array([])
    for _ in 0..<511 { deep = .array([deep]) }
    // One string on disk, but 300 MB for a reader that expands it.
    let shared = PropertyListValue.string(String(repeating: "x", count: 1 << 20))
    let large = PropertyListValue.array(Array(repeating: shared, count: 300))
    scene.defaults.set(1, forKey: "k")
    for value in [deep, large] {
      let error = #expect(throws: WormholeError.self) {
        try scene.defaults.write(value, forKey: "refused")
      }
      #expect(error?.code == .unsupportedValue)
    }
    #expect(try scene.defaults.storedValues() == ["k": 1])
  }
}
