import Foundation
import GroupDefaults
import Synchronization
import Testing
import Wormhole
import WormholePropertyLists
import WormholeSystem
import WormholeTestSupport

@Suite("Defaults of one process", .blocking, .bothEngines)
struct StoringTests {
  let scene: DefaultsScene

  init() throws { scene = try DefaultsScene() }

  @Test("keep the values that were set, one key at a time, in a file with exactly these keys")
  func stored() throws {
    let defaults = scene.defaults
    defaults.set(3, forKey: "Int")
    defaults.set(true, forKey: "bool")
    defaults.set(0.5, forKey: "double")
    defaults.set(Float(0.25), forKey: "float")
    defaults.set("é", forKey: "a.dotted@key")
    defaults.set(["a": [1, "b", true] as [Any]], forKey: "@nested")
    defaults.set(1, forKey: "gone")
    defaults.removeObject(forKey: "gone")
    defaults.set(1, forKey: "nil")
    defaults.set(nil, forKey: "nil")
    defaults.setValue(2, forKey: "coded")
    #expect(defaults.value(forKey: "coded") as? Int == 2)
    defaults.setValue(nil, forKey: "coded")
    defaults.set(1, forKey: "generic")
    defaults.set(Optional(String?.none) as Any, forKey: "generic")
    #expect(scene.reported() == [])
    // The file; on etcd what a file would hold.
    let bytes = try #require(try scene.container.own.value("defaults").snapshot().bytes())
    #expect(
      try PropertyListValue(bytes: bytes) == [
        "Int": 3, "bool": true, "double": 0.5, "float": 0.25, "a.dotted@key": "é",
        "@nested": ["a": [1, "b", true]],
      ])
    let other = GroupDefaults(in: scene.container)
    #expect(other.dictionaryRepresentation().keys.contains("@nested"))
    #expect(other.string(forKey: "a.dotted@key") == "é")
  }

  @Test("return numbers that cast to every type, as the original's do")
  func numbers() {
    for (key, object) in ReceivedNumbers.sent { scene.defaults.set(object, forKey: key) }
    var read: [String: Any] = [:]
    for key in ReceivedNumbers.sent.keys { read[key] = scene.defaults.object(forKey: key) }
    #expect(ReceivedNumbers.findings(in: read) == "")
    #expect(ReceivedNumbers.findings(in: scene.defaults.dictionaryRepresentation()) == "")
    scene.defaults.set(ReceivedNumbers.sent, forKey: "all")
    #expect(ReceivedNumbers.findings(in: scene.defaults.dictionary(forKey: "all") ?? [:]) == "")
    #expect(scene.defaults.array(forKey: "ints") as? [Double] == [1, 2])
  }

  @Test("refuse a value that no property list can hold with an error that names key and place")
  func unsupported() throws {
    struct Own {}
    scene.defaults.set(1, forKey: "kept")
    scene.defaults.set(["list": [1, Own()] as [Any]], forKey: "kept")
    scene.defaults.set(Double.nan as Any, forKey: "nan")
    let sentences = scene.reported()
    #expect(sentences.count == 1)
    #expect(sentences.first?.contains("cannot set \"kept\": at list[1], ") == true, "\(sentences)")
    #expect(scene.defaults.integer(forKey: "kept") == 1)
    let error = #expect(throws: WormholeError.self) {
      try scene.defaults.write(.date(Date(timeIntervalSinceReferenceDate: .nan)), forKey: "date")
    }
    #expect(error?.code == .unsupportedValue)
    scene.defaults.register(defaults: ["registered-unsupported": Own()])
    #expect(scene.reported().count == 1)
  }

  struct Seat: Codable, Equatable, Sendable {
    var row: Int
    var taken: Date?
  }

  @Test("hold types of the program, and report a value of another type")
  func typed() throws {
    let defaults = scene.defaults
    let seat = Seat(row: 7, taken: Date(timeIntervalSinceReferenceDate: 1.5))
    try defaults.write(seat, forKey: "seat")
    #expect(try defaults.read(Seat.self, forKey: "seat") == seat)
    #expect(try defaults.read(forKey: "seat")?["row"] == 7)
    try defaults.update(Seat.self, forKey: "seat") { $0?.row += 1 }
    #expect(try defaults.read(Seat.self, forKey: "seat")?.row == 8)
    #expect(try defaults.read(Seat.self, forKey: "none") == nil)
    let error = #expect(throws: WormholeError.self) {
      try defaults.read([Int].self, forKey: "seat")
    }
    #expect(error?.code == .wrongType)
    try defaults.update(Seat.self, forKey: "seat") { $0 = nil }
    #expect(try defaults.read(forKey: "seat") == nil)
  }

  @Test("are the same for tasks")
  func tasks() async throws {
    let defaults = scene.defaults
    try await defaults.write(1, forKey: "k", durability: .durable)
    try await defaults.update(forKey: "k") { $0 = .integer(($0?.int64Value ?? 0) + 1) }
    #expect(try await defaults.read(forKey: "k") == 2)
    try await defaults.write(Seat(row: 1), forKey: "seat")
    try await defaults.update(Seat.self, forKey: "seat") { $0?.row = 2 }
    try await defaults.update { $0["both"] = $0["k"] }
    #expect(try await defaults.read(Seat.self, forKey: "seat") == Seat(row: 2))
    #expect(try await defaults.remove(forKey: "both"))
    #expect(try await !defaults.remove(forKey: "both"))
  }

  @Test("change a value only from the expected one")
  func compareAndSet() throws {
    let defaults = scene.defaults
    #expect(try defaults.compareAndSet(nil, 1, forKey: "k") == nil)
    #expect(try defaults.compareAndSet(nil, 2, forKey: "k") == 1)
    #expect(try defaults.read(forKey: "k") == 1)
    #expect(try defaults.compareAndSet(1, nil, forKey: "k") == 1)
    #expect(try defaults.read(forKey: "k") == nil)
  }

  @Test("are not written when nothing changes")
  func unchanged() throws {
    scene.defaults.set(1, forKey: "k")
    let value = scene.container.own.value("defaults")
    let version = try value.version()
    scene.defaults.set(1, forKey: "k")
    scene.defaults.removeObject(forKey: "absent")
    #expect(try value.version() == version && version != nil)
  }

  @Test("are on the disk after synchronize(), which reports it")
  func synchronize() throws {
    #expect(scene.defaults.synchronize(), "\(scene.reported())")
    scene.defaults.set(1, forKey: "k")
    #expect(scene.defaults.synchronize(), "\(scene.reported())")
    #expect(scene.defaults.integer(forKey: "k") == 1)
  }

  #if DEBUG
    @Test(
      "wait for the disk in synchronize() and durable writes, and in no other call",
      .onlyDirectories("it counts calls"))
    func fsyncs() throws {
      let defaults = scene.defaults
      defaults.set(0, forKey: "k")
      func fsyncs(_ body: () throws -> Void) rethrows -> Int {
        let count = Mutex(0)
        let plan = Faults.Plan { call, _ in
          if call == .fsync { count.withLock { $0 += 1 } }
          return .proceed
        }
        try Faults.$plan.withValue(plan, operation: body)
        return count.withLock { $0 }
      }
      #expect(fsyncs { defaults.set(1, forKey: "k") } == 0)
      let directory = try FileDescriptor.open(scene.directory.path, [.readOnly, .directory])
      let isAtOnce = try directory.commitScope().isEverything
      // The file, its directory, and the directory that it came from.
      #expect(fsyncs { defaults.synchronize() } >= (isAtOnce ? 2 : 3))
      let least = isAtOnce ? 1 : 3
      #expect(try fsyncs { try defaults.write(2, forKey: "k", durability: .durable) } >= least)
      #expect(
        try fsyncs { try defaults.update(forKey: "k", durability: .durable) { $0 = 3 } } >= least)
      #expect(try fsyncs { try defaults.remove(forKey: "k", durability: .durable) } >= least)
      // A failing disk is not a success.
      let failing = Faults.Plan { call, _ in call == .fsync ? .fail(.inputOutput) : .proceed }
      #expect(!Faults.$plan.withValue(failing) { defaults.synchronize() })
      #expect(scene.reported().count == 1)
    }
  #endif

  @Test("distinguish absent from empty, and are empty again after quarantine")
  func absence() throws {
    #expect(try scene.defaults.storedValues() == nil)
    scene.defaults.set(1, forKey: "k")
    scene.defaults.removeObject(forKey: "k")
    #expect(try scene.defaults.storedValues() == [:])
    _ = try scene.putAside()
    #expect(try scene.defaults.storedValues() == nil)
  }

  @Test(
    "compile with code that was written for UserDefaults, if the name of the type is changed")
  func sourceCompatible() throws {
    typealias UserDefaults = GroupDefaults
    let defaults: UserDefaults = scene.defaults
    defaults.register(defaults: ["compatible.volume": 5])
    if defaults.object(forKey: "compatible.volume") as? Int == 5 {
      defaults.set(defaults.integer(forKey: "compatible.volume") + 1, forKey: "compatible.volume")
    }
    let name: String? = nil
    defaults.set(name, forKey: "name")
    defaults.set("x", forKey: "name")
    defaults.set(Date(timeIntervalSinceReferenceDate: 1), forKey: "date")
    defaults.set(URL(fileURLWithPath: "/tmp/x"), forKey: "url")
    defaults.synchronize()
    #expect(defaults.integer(forKey: "compatible.volume") == 6)
    #expect(defaults.object(forKey: "date") as? Date == Date(timeIntervalSinceReferenceDate: 1))
    #expect(defaults.dictionaryRepresentation()["name"] as? String == "x")
    #expect(!defaults.objectIsForced(forKey: "name"))
    #expect(UserDefaults(suiteName: "NSGlobalDomain") == nil && UserDefaults(suiteName: "") == nil)
  }
}
