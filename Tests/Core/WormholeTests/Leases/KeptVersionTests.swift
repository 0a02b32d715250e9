import WormholeInspection

#if DEBUG
  import FoundationEssentials
  import Testing
  import WormholePropertyLists
  import WormholeSystem
  import WormholeTestSupport

  @testable import Wormhole

  /// What a loss has left: a name without its content, and the version that stands in for it. It has the
  /// name of an earlier start if the machine was lost, and that of this one if only the file system was.
  @Suite("A kept version", .blocking)
  struct KeptVersionTests {
    private let directory: TemporaryDirectory
    private let value: PlainValue

    init() throws {
      directory = try TemporaryDirectory()
      value = try directory.container().value("k")
      try value.replace(with: 1)
    }

    private var lease: String { directory.path + "/values/k/lease/" }

    private static let names = [KeptVersion.name ?? "", "kept-earlier"]

    private var file: String { directory.path + "/values/k/value.plist" }

    private func loseLast(keptAs name: String = "kept-earlier", content: [UInt8] = []) throws {
      try value.remove()
      try value.replace(with: 1)
      let own = try #require(KeptVersion.name)
      try rename(lease + own, at: Directory.current, to: lease + name, at: Directory.current)
      // Another file, because a kept version is a second name.
      try removeFile(file, at: Directory.current)
      try FileDescriptor.open(file, [.writeOnly, .create]).writeAll(content)
    }

    /// Runs a body before each system call of another.
    private func between(
      _ change: () throws -> Void, look: @escaping @Sendable (Int) throws -> Void
    ) throws {
      try loseLast(keptAs: Self.names[0])
      for place in 0..<(try Faults.calls(of: change)) {
        try loseLast(keptAs: Self.names[0])
        try Faults.$plan.withValue(.acting(before: place) { try look(place) }) { try change() }
      }
    }

    private func bytes(of file: String) throws -> [UInt8] {
      try FileDescriptor.open(file, .readOnly).readToEnd(expectedBytes: 0, maximumBytes: 10_000)
    }

    private func kept() throws -> [String] {
      try TemporaryDirectory.names(of: lease).filter { $0.hasPrefix(KeptVersion.prefix) }
    }

    @Test(
      "is read, whatever start it is of, also while the first publication removes it",
      arguments: names)
    func readMeanwhile(name: String) throws {
      try loseLast(keptAs: name)
      #expect(try value.read() == 1)
      for place in 0..<(try Faults.calls { _ = try value.read() }) {
        try loseLast(keptAs: name)
        let plan = Faults.Plan.acting(before: place) { [value] in try value.replace(with: 2) }
        try Faults.$plan.withValue(plan) {
          let found = try value.read()
          #expect(found == 1 || found == 2, "published before call \(place)")
        }
      }
    }

    @Test("stands in for content of which any block is lost, and for no content that has zeros")
    func parts() throws {
      let settings = PropertyListValue.dictionary(
        Dictionary(uniqueKeysWithValues: (0..<1_000).map { ("key \($0)", .string("value \($0)")) }))
      let other = value.container.value("other")
      try other.replace(with: settings)
      let whole = try FileDescriptor.open(other.path, .readOnly)
        .readToEnd(expectedBytes: 0, maximumBytes: 1 << 20)
      #expect(whole.count > 3 * PublishedContent.blockBytes)
      try loseLast(content: whole)
      #expect(try value.read() == settings)
      for start in stride(from: 0, to: whole.count, by: PublishedContent.blockBytes) {
        try loseLast(content: Array(whole[..<start]))
        #expect(try value.read() == 1, "cut off at \(start)")
        let end = min(start + PublishedContent.blockBytes, whole.count)
        try loseLast(
          content: whole[..<start] + [UInt8](repeating: 0, count: end - start) + whole[end...])
        #expect(try value.read() == 1, "without the block at \(start)")
      }
      let zeros = PropertyListValue.data(Data(count: 20_000))
      try loseLast(content: zeros.binaryBytes(limits: .standard))
      #expect(try value.read() == zeros, "of another program")
      try loseLast()
      try value.replace(with: zeros)
      #expect(try value.read() == zeros)
      try value.replace(with: 2)
      try value.update { $0 = zeros }
      #expect(try value.read() == zeros)
    }

    // A look at each moment is what a process finds if the other one is killed there.
    @Test("stands in until what follows it is there, at each step")
    func followed() throws {
      let value = value
      try between(
        { try value.replace(with: 2, durability: .durable) },
        look: {
          let found = try value.read()
          #expect(found == 1 || found == 2, "a durable publication, before call \($0)")
        })
      #expect(try value.read() == 2)
      try between(
        { _ = try value.remove() },
        look: {
          let found = try value.read()
          #expect(found == 1 || found == nil, "a removal, before call \($0)")
        })
      #expect(try value.read() == nil)
      try between(
        { try value.update(durability: .durable) { $0 = 1 } },
        look: {
          let found = try value.read()
          #expect(found == 1, "an update that changes nothing, before call \($0)")
        })
      #expect(try kept() == [])
      #expect(try !KeptVersion.isMissing(bytes(of: file)))
    }

    @Test("is put back when what cannot be read is put aside", arguments: names)
    func putBack(name: String) throws {
      for content in [[], [0, 0, 0], Array("junk".utf8)] as [[UInt8]] {
        try loseLast(keptAs: name, content: content)
        let aside = try #require(try value.quarantine())
        #expect(try bytes(of: aside) == content)
        #expect(try value.read() == 1)
        #expect(try value.quarantine() != nil, "it can be read, so nothing takes its place")
        #expect(try value.read() == nil)
        #expect(try kept().filter { $0 == Self.names[0] } == [])
      }
      try loseLast(keptAs: name)
      try removeFile(file, at: Directory.current)
      try makeDirectory(file, at: Directory.current)
      _ = try value.quarantine()
      #expect(try value.read() == 1, "in a directory's place")
    }

    @Test("that was emptied together with the value stands in for nothing")
    func both() throws {
      try loseLast(keptAs: Self.names[0])
      try FileDescriptor.open(lease + Self.names[0], [.writeOnly, .truncate]).close()
      #expect(throws: WormholeError.self) { try value.read() }
      #expect(try value.quarantine() != nil)
      #expect(try value.read() == nil)
    }

    @Test("is reported with its time")
    func reported() throws {
      for (content, isRead) in [([], true), (Array("junk".utf8), false)] as [([UInt8], Bool)] {
        try loseLast(keptAs: Self.names[0], content: content)
        let status = try fileStatus(lease + Self.names[0])
        let report = try #require(try value.container.report().names.values.first)
        #expect(report.kept == status.modified)
        if case .readable = report.condition { #expect(isRead) } else { #expect(!isRead) }
        try value.replace(with: 2)
        #expect(try value.container.report().names.values.first?.kept == nil)
      }
    }

    @Test("of this start stays, although a late holder removes that of an earlier one")
    func lateHolder() throws {
      let own = try #require(KeptVersion.name)
      try loseLast()
      let calls = try Participant(directory.path).calls(of: "set k 2")
      for place in stride(from: TriedSteps.first, to: calls, by: TriedSteps.stride) {
        try loseLast()
        let late = try Participant(directory.path)
        try late.tell("stop \(place) set k 3")
        try late.waitUntilStopped()
        try value.replace(with: 4)
        let before = try kept()
        try late.send(.continue)
        _ = try late.answer()
        try late.end()
        #expect(try !before.contains(own) || kept().contains(own), "stopped before call \(place)")
        #expect(try [3, 4].contains(value.read()))
      }
    }
  }
#endif
