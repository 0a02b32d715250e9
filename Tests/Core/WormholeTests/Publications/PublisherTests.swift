import Dispatch
import FoundationEssentials
import Synchronization
import Testing
import Wormhole
import WormholePropertyLists
import WormholeSystem
import WormholeTestSupport
import WormholeToolkit

@Suite("The publisher of a value", .blocking, .bothEngines)
struct PublisherTests {
  let directory: TemporaryDirectory
  let container: SharedContainer

  init() throws {
    directory = try TemporaryDirectory()
    container = try directory.container()
  }

  private func file(_ value: PlainValue) throws -> [UInt8] {
    try FileDescriptor.open(value.path, .readOnly).readToEnd(
      expectedBytes: 0, maximumBytes: 1 << 27)
  }

  @Test("is the process that wrote it, whichever way, with its program and the time")
  func others() throws {
    let value = container.value("x")
    let other = try Participant(directory.path)
    #expect(try value.snapshot().publisher == nil)
    let commands = ["set x 1", "durable x 2", "add x 3", "text x 100000", "text x 300", "set x 3"]
    for command in commands {
      let start = Date()
      #expect(try other.ask(command) == "done")
      let snapshot = try value.snapshot()
      let publisher = try #require(snapshot.publisher, "\(command)")
      #expect(publisher.processID == other.processID)
      #expect(publisher.program == "participant" && publisher.peer == nil)
      // The two clocks are one; a date has no more than some 100 ns.
      #expect((start - 0.001...Date()).contains(publisher.date))
    }
    #expect("\(try #require(value.snapshot().publisher))".contains("(participant)"))
    try value.replace(with: 7)
    #expect(try value.snapshot().publisher?.processID == ProcessIdentity.current.processID)
    try value.remove()
    #expect(try value.snapshot().publisher == nil)
  }

  @Test(
    "is in the one file, whose content is the property list for every program",
    .onlyDirectories("it reads the file"))
  func oneFile() throws {
    let value = container.value("x")
    for content: PropertyListValue in [1, ["a": [1, 2.5, true, "é"]], .string(longText(70_000))] {
      try value.replace(with: content)
      #expect(try PropertyListValue(bytes: file(value)) == content)
      #expect(try value.snapshot().bytes() == content.binaryBytes(), "as published")
      #expect(try file(value).count < content.binaryBytes().count + 300)
    }
    #expect(Litter.entries(of: "x", in: directory) == ["held"], "\(directory.listing)")
  }

  @Test(
    "is not known from a file that another kind of program wrote, or wrote again",
    .onlyDirectories("it writes the file"))
  func foreign() throws {
    let value = container.value("x")
    try value.replace(with: ["a": 1])
    let script =
      "import plistlib; f = '\(value.path)'; v = plistlib.load(open(f, 'rb')); "
      + "plistlib.dump(v, open(f, 'wb'), fmt=plistlib.FMT_BINARY)"
    let end = try ChildProcess("python3", ["-c", script]).wait(until: soon)
    #expect(end == .exited(0))
    #expect(try value.read() == ["a": 1] && value.snapshot().publisher == nil)
    // An XML document has no room for it.
    try value.replace(withBytes: Array("<plist version=\"1.0\"><true/></plist>".utf8))
    #expect(try value.read() == true && value.snapshot().publisher == nil)
  }

  @Test("does not make an unchanged value another one")
  func unchanged() throws {
    let value = container.value("x")
    let typed = container.value("x", as: [Int].self)
    let other = try Participant(directory.path)
    try typed.replace(with: [1, 2])
    let version = try value.version()
    try value.update { $0 = [1, 2] }
    try typed.update { $0 = [1, 2] }
    #expect(try value.version() == version)
    #expect(try other.ask("add n 0") == "done" && other.ask("add n 0") == "done")
    #expect(try container.value("n").snapshot().publisher?.processID == other.processID)
  }

  @Test(
    "leaves a value as large as one may be readable, and no larger one",
    .onlyDirectories("etcd has a smaller limit"))
  func largest() throws {
    let value = container.value("x")
    // The head of the string, the table and the trailer.
    let room = SharedContainer.maximumValueBytes - 8 - 6 - 4 - 32
    try value.replace(with: .string(longText(room)))
    #expect(try value.snapshot().bytes()?.count == SharedContainer.maximumValueBytes)
    #expect(try value.snapshot().publisher != nil)
    #expect(throws: WormholeError.self) { try value.replace(with: .string(longText(room + 1))) }
    var limits = PropertyListLimits.standard
    try value.replace(with: .string(longText(1_000)))
    limits.maximumBytes = try value.snapshot().bytes()?.count ?? 0
    #expect(try value.read(limits: limits) != nil)
    limits.maximumBytes -= 1
    let error = #expect(throws: WormholeError.self) { try value.read(limits: limits) }
    #expect(error?.code == .tooLarge)
  }

  @Test("is not known from bytes that are no record", .onlyDirectories("it writes the file"))
  func hostile() throws {
    let value = container.value("x")
    let record = PublicationRecord(
      Publisher(processID: 9, program: "p", peer: "phone", nanosecondsSince1970: 1_000_000_000),
      base: .nothing, expiry: nil)
    let document = try PropertyListValue.integer(1).binaryBytes()
    func plant(_ content: [UInt8]) throws -> PlainSnapshot {
      try container.value("x").replace(with: 0)
      let end = try #require(BinaryPropertyListAnnotation.end(with: content, of: document))
      let file = try FileDescriptor.open(value.path, [.writeOnly, .truncate])
      try file.writeAll(Array(document[..<end.unchanged]) + end.bytes)
      return try value.snapshot()
    }
    let good = record.bytes
    let snapshot = try plant(good)
    #expect(snapshot.publisher == record.publisher)
    #expect(snapshot.publisher?.peer == "phone")
    #expect(snapshot.publisher?.date == Date(timeIntervalSince1970: 1))
    for count in 0..<good.count {
      let snapshot = try plant(Array(good[..<count]))
      #expect(try snapshot.publisher == nil && snapshot.propertyList() == 1)
    }
    for (index, byte) in [(0, 0), (0, 3), (1, 0x80), (13, 0x80), (33, 99), (good.count - 1, 0xFF)] {
      var bytes = good
      bytes[index] = UInt8(byte)
      let snapshot = try plant(bytes)
      #expect(try snapshot.publisher == nil && snapshot.propertyList() == 1, "byte \(index)")
    }
    #expect(try plant(good + [0]).publisher == nil)
  }

  @Test("of several changes is reported if one process made them all")
  func runs() throws {
    let value = container.value("x")
    let (a, b) = (try Participant(directory.path), try Participant(directory.path))
    var last = try value.snapshot().publication
    func publisher() throws -> Int32? {
      let now = try value.snapshot().publication
      defer { last = now }
      return now.publisher(since: last)?.processID
    }
    #expect(try a.ask("add x 1") == "done" && a.ask("add x 1") == "done")
    #expect(try publisher() == a.processID)
    #expect(try a.ask("add x 1") == "done" && a.ask("add x 1") == "done")
    #expect(try publisher() == a.processID)
    #expect(try b.ask("add x 1") == "done" && a.ask("add x 1") == "done")
    #expect(try publisher() == nil, "both have changed it")
    #expect(try b.ask("add x 1") == "done" && b.ask("add x 1") == "done")
    #expect(try publisher() == b.processID)
    #expect(try a.ask("set x 1") == "done")
    #expect(try publisher() == nil, "it did not look what it replaced")
    #expect(try a.ask("add x 1") == "done")
    #expect(try publisher() == a.processID)
    #expect(try a.ask("remove x") == "done" && b.ask("add x 1") == "done")
    #expect(try publisher() == nil, "a removal names nobody")
  }
}
