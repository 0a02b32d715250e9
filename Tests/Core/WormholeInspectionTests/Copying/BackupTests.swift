import FoundationEssentials
import Testing
import Wormhole
import WormholePropertyLists
import WormholeSystem
import WormholeTestSupport

@testable import WormholeInspection

@Suite("The backup of a container", .blocking)
struct BackupTests {
  private let scene: CopyScene

  init() throws { scene = try CopyScene() }

  private var directory: String { scene.directory.path }

  /// - Parameter staging: Where it is composed; by default in this test's directory.
  private func backup(_ source: SharedContainer, in staging: String? = nil) throws -> [UInt8] {
    var bytes: [UInt8] = []
    _ = try ContainerBackup(of: source).run(stagedIn: staging ?? directory, until: soon) {
      bytes += $0
    }
    return bytes
  }

  /// - Parameters:
  ///   - piece: How much a read returns at most: a pipe returns what it has.
  ///   - staging: As of `backup`.
  private func restore(
    _ bytes: [UInt8], to place: String, piece: Int = .max, in staging: String? = nil
  ) throws {
    var rest = bytes[...]
    _ = try ContainerBackup.restore(
      "backup", to: place, group: nil, stagedIn: staging ?? directory, until: soon
    ) { maximum in
      let taken = rest.prefix(min(maximum, piece))
      rest = rest.dropFirst(taken.count)
      return Array(taken)
    }
  }

  @Test("has everything that outlives processes, as its users find it", arguments: CopyTests.ways)
  func complete(way: [TestEngine]) throws {
    let source = try scene.container(way[0], "source")
    try scene.fill(source)
    let bytes = try backup(source)
    let place = try scene.place(way[1], "other")
    try restore(bytes, to: place, piece: 1_000)
    let original = try scene.description(of: source)
    let difference = try scene.description(of: scene.open(place)).difference(from: original)
    #expect(difference.isEmpty && original.count > 40)
    #expect(try leftovers() == [])
  }

  private func leftovers() throws -> [String] {
    try FileDescriptor.open(directory, [.readOnly, .directory]).entries().map(\.name.text)
      .filter { $0.contains(".wormhole-") || $0.contains(".copying-") }
  }

  @Test("keeps a group's own files, links, permissions and times")
  func files() throws {
    let source = try scene.container(.directory, "source")
    let path = directory + "/source"
    let deep = "/deep" + String(repeating: "/" + String(repeating: "d", count: 60), count: 5)
    for part in deep.indices.filter({ deep[$0] == "/" }).dropFirst().map({ deep[..<$0] }) + [
      deep[...]
    ] {
      try makeDirectory(path + part)
    }
    let file = try FileDescriptor.open(path + deep + "/file", [.readWrite, .create], mode: 0o640)
    try file.writeAll(Array(repeating: 7, count: 700_001))
    try file.setModified(seconds: -5, nanoseconds: 250_000_000)
    try makeSymbolicLink(FileName(path + "/link"), at: Directory.current, target: FileName("/away"))
    try makeFIFO(FileName(path + "/fifo"), at: Directory.current)
    try setPermissions(FileName(path + "/deep"), at: Directory.current, 0o500)
    try restore(backup(source), to: directory + "/other")
    let other = directory + "/other"
    let status = try fileStatus(other + deep + "/file")
    #expect(status.size == 700_001 && status.permissions == 0o640)
    #expect(status.modifiedSeconds == -5 && status.modifiedNanoseconds == 250_000_000)
    #expect(try linkTarget(other + "/link") == "/away")
    #expect(try fileStatus(other + "/fifo").kind == .fifo)
    #expect(try fileStatus(other + "/deep").permissions == 0o500)
    // So that the directory can be removed.
    for place in [path, other] {
      try setPermissions(FileName(place + "/deep"), at: Directory.current, 0o700)
    }
  }

  @Test("is made again whatever the times, depths, names and modes of a group's files are")
  func oddFiles() throws {
    // A file system with large times.
    let memory = try TemporaryDirectory(under: "/dev/shm")
    let source = try SharedContainer(path: memory.path)
    let times: [(Int64, Int64)] = [
      (.max, 0), (.min, 0), (1 << 40, 999_999_999), (-(1 << 40), 1), (-1, 500_000_000),
    ]
    for (index, time) in times.enumerated() {
      let file = try FileDescriptor.open("\(memory.path)/\(index)", [.writeOnly, .create])
      try file.setModified(seconds: time.0, nanoseconds: time.1)
    }
    for name in [".new-notes", ".container-notes"] {
      try FileDescriptor.open(memory.path + "/" + name, [.writeOnly, .create]).writeAll([1])
    }
    for (name, mode) in [("sticky", UInt32(0o1777)), ("shared", 0o2750)] {
      try makeDirectory(memory.path + "/" + name)
      try setPermissions(FileName(memory.path + "/" + name), at: Directory.current, mode)
    }
    var place = try FileDescriptor.open(memory.path, [.pathOnly, .directory])
    let deep = String(repeating: "d", count: 250)
    for _ in 0..<300 {
      try makeDirectory(deep, at: place.rawValue)
      place = try FileDescriptor.open(deep, at: place.rawValue, [.pathOnly, .directory])
    }
    let target = try TemporaryDirectory(under: "/dev/shm")
    let other = target.path + "/other"
    try restore(backup(source, in: target.path), to: other, in: target.path)
    for index in times.indices {
      let (now, before) = (
        try fileStatus("\(other)/\(index)"), try fileStatus("\(memory.path)/\(index)")
      )
      #expect(now.modifiedSeconds == before.modifiedSeconds)
      #expect(now.modifiedNanoseconds == before.modifiedNanoseconds)
    }
    #expect(try fileStatus(other + "/.new-notes").size == 1)
    #expect(try fileStatus(other + "/.container-notes").size == 1)
    #expect(try fileStatus(other + "/sticky").permissions == 0o1777)
    #expect(try fileStatus(other + "/shared").permissions == 0o2750)
    for path in [memory.path, other] {
      let open = try FileDescriptor.open(path, [.readOnly, .directory])
      try TreeRemoval().remove(FileName(deep), at: open.rawValue)
    }
  }

  @Test(
    "is refused after any change of its bytes, and where it ends too early; nothing is made then")
  func damaged() throws {
    let source = try scene.container(.directory, "source")
    try source.value("x").replace(with: ["a": "b"])
    try FileDescriptor.open(directory + "/source/notes", [.writeOnly, .create]).writeAll([1, 2, 3])
    let bytes = try backup(source)
    let end = try #require(
      bytes.indices.first { bytes[$0...].starts(with: "end.plist\0".utf8) })
    let place = directory + "/other"
    func refuse(_ bytes: [UInt8], _ what: String) throws {
      let error = #expect(throws: AppGroupError.self, "\(what)") { try restore(bytes, to: place) }
      #expect(error?.code == .damaged || error?.code == .formatTooNew, "\(what): \(error as Any)")
    }
    for position in stride(from: 0, to: end, by: 211) {
      var changed = bytes
      changed[position] ^= 1 << UInt8(position % 8)
      try refuse(changed, "bit \(position % 8) of byte \(position) of \(end)")
    }
    for length in stride(from: 0, to: end + 512, by: 509) {
      try refuse(Array(bytes[..<length]), "\(length) bytes of \(bytes.count)")
    }
    #expect(try leftovers() == [])
    #expect(throws: Errno.noSuchFile) { try fileStatus(place) }
    try restore(bytes, to: place)
  }

  /// An archive whose hash is right.
  private func archive(
    version: Int64 = 1, _ fill: (TarWriter) throws -> Void
  ) throws -> [UInt8] {
    var bytes: [UInt8] = []
    let writer = TarWriter { bytes += $0 }
    func put(_ name: String, _ record: PropertyListValue) throws {
      let content = Array(try record.xmlData())
      try writer.put(
        TarEntry(
          path: Array(name.utf8), kind: .file, permissions: 0o600, size: Int64(content.count)),
        content: content)
    }
    try put("backup.plist", ["version": .integer(version)])
    try fill(writer)
    let hash = String(writer.hashValue, radix: 16)
    try put("end.plist", ["entries": .integer(Int64(writer.entries)), "hash": .string(hash)])
    try writer.finish()
    return bytes
  }

  private func entry(_ path: String, _ kind: TarEntry.Kind = .directory) -> TarEntry {
    TarEntry(path: Array(path.utf8), kind: kind, permissions: 0o700)
  }

  @Test("cannot make anything outside its place, whatever its paths are")
  func hostile() throws {
    let place = directory + "/other"
    var away = entry("container/link", .link)
    away.target = Array("\(directory)".utf8)
    let cases: [(name: String, entries: [TarEntry])] = [
      ("up", [entry("container"), entry("container/../evil")]),
      ("far up", [entry("container"), entry("container/../../evil")]),
      ("a file far up", [entry("container"), entry("container/../../evil", .file)]),
      ("up as a file", [entry("container"), entry("container/..", .file)]),
      ("here", [entry("container"), entry("container/./evil")]),
      ("an empty part", [entry("container"), entry("container//evil", .file)]),
      ("an empty end", [entry("container"), entry("container/", .file)]),
      ("a link on the way", [entry("container"), away, entry("container/link/evil", .file)]),
      (
        "a link in the place of a file", [entry("container"), away, entry("container/link", .file)]
      ),
      ("twice", [entry("container"), entry("container/a"), entry("container/a")]),
      (
        "a file as a directory",
        [entry("container"), entry("container/a", .file), entry("container/a/b")]
      ),
      ("no parent", [entry("container"), entry("container/a/b", .file)]),
      (
        "a long name",
        [entry("container"), entry("container/" + String(repeating: "a", count: 300))]
      ),
      (
        "NUL",
        [
          entry("container"),
          entry(
            String(repeating: "container/", count: 10) + "\0b\0" + String(repeating: "c", count: 90)
          ),
        ]
      ),
      ("a link to nowhere", [entry("container"), entry("container/link", .link)]),
      ("no container", [entry("other")]),
    ]
    for (name, entries) in cases {
      let bytes = try archive { writer in for entry in entries { try writer.put(entry) } }
      let error = #expect(throws: AppGroupError.self, "\(name)") { try restore(bytes, to: place) }
      #expect(
        error?.code == .damaged || error?.code == .containerMissing, "\(name): \(error as Any)")
    }
    #expect(try leftovers() == [])
    let names = try FileDescriptor.open(directory, [.readOnly, .directory]).entries().map(
      \.name.text)
    #expect(names.filter { $0 != "companion" } == [])
  }

  @Test("is refused with a hidden name, a wrong version, or anything after its end")
  func rubbish() throws {
    let source = try scene.container(.directory, "source")
    try source.value("x").replace(with: 1)
    let bytes = try backup(source)
    let place = directory + "/other"
    for rubbish in [[1], [UInt8](repeating: 0, count: 5_000) + [7], entry("more").bytes] {
      let error = #expect(throws: AppGroupError.self) { try restore(bytes + rubbish, to: place) }
      #expect(error?.code == .damaged)
    }
    for version in [0, -2] {
      let error = #expect(throws: AppGroupError.self) {
        try restore(archive(version: Int64(version)) { _ in }, to: place)
      }
      #expect(error?.code == .damaged)
    }
    let hidden = try archive { writer in
      try writer.put(entry("container"))
      try writer.put(entry("container/a\0b"))
    }
    let error = #expect(throws: AppGroupError.self) { try restore(hidden, to: place) }
    #expect(error?.description.contains("NUL") == true)
    #expect(throws: Errno.noSuchFile) { try fileStatus(place) }
    // tar(1) fills its last record.
    try restore(bytes + [UInt8](repeating: 0, count: 9_216), to: place)
  }

  #if DEBUG
    @Test("of a deep tree costs a few calls for each level, down and up again")
    func deep() throws {
      func calls(depth: Int) throws -> Int {
        var path = "container"
        let bytes = try archive { writer in
          try writer.put(entry(path))
          var names: [String] = []
          for _ in 0..<depth {
            path += "/d"
            try writer.put(entry(path))
            names.append(path)
          }
          for name in names.reversed() { try writer.put(entry(name + "/file", .file)) }
        }
        let root = "\(directory)/unpacked-\(depth)"
        try makeDirectory(root)
        let place = SharedDescriptor(try FileDescriptor.open(root, [.readOnly, .directory]))
        var rest = bytes[...]
        let reader = TarReader { maximum in
          defer { rest = rest.dropFirst(maximum) }
          return Array(rest.prefix(maximum))
        }
        let plan = Faults.Plan { _, _ in .proceed }
        try Faults.$plan.withValue(plan) {
          let unpacking = TreeUnpacking(at: place)
          while let entry = try reader.next() {
            if entry.path.starts(with: "container".utf8) {
              try unpacking.make(entry, contentOf: reader)
            } else {
              try reader.content(of: entry) { _ in }
            }
          }
          try unpacking.finish()
        }
        return plan.calls
      }
      let (short, long) = try (calls(depth: 100), calls(depth: 400))
      #expect(long < short * 5, "\(short) and \(long)")
    }
  #endif

  @Test("of a newer form is refused as such, and further members of this form are ignored")
  func versions() throws {
    let place = directory + "/other"
    let newer = try archive(version: 2) { _ in }
    let error = #expect(throws: AppGroupError.self) { try restore(newer, to: place) }
    #expect(error?.code == .formatTooNew)
    let source = try scene.container(.directory, "source")
    try source.value("x").replace(with: 1)
    var content: [(TarEntry, [UInt8])] = []
    var rest = try backup(source)[...]
    let reader = TarReader { maximum in
      defer { rest = rest.dropFirst(maximum) }
      return Array(rest.prefix(maximum))
    }
    while let entry = try reader.next() {
      content.append((entry, try reader.content(of: entry, maximumBytes: 1 << 20)))
    }
    let further = try archive { writer in
      try writer.put(entry("future"))
      for (entry, bytes) in content.dropFirst().dropLast() { try writer.put(entry, content: bytes) }
      try writer.put(entry("future/more"))
    }
    try restore(further, to: place)
    #expect(try scene.open(place).value("x").read() == 1)
  }
}

@Suite("A member of a tar archive", .blocking)
struct TarEntryTests {
  private func read(_ bytes: [UInt8]) throws -> TarEntry? {
    var rest = bytes[...]
    return try TarReader { maximum in
      defer { rest = rest.dropFirst(maximum) }
      return Array(rest.prefix(maximum))
    }.next()
  }

  @Test("is read as it was written, however long its names are, and whenever it was changed")
  func roundTrip() throws {
    let long = Array(String(repeating: "ä/", count: 200).utf8)
    for path in [Array("a".utf8), Array(repeating: 0x61, count: 100), long, [0xFF, 0x2F, 0x0A]] {
      for (seconds, nanoseconds) in [
        (0, 0), (1_700_000_000, 5), (-1, 0), (-1, 999_999_999), (-5, 250_000_000), (1 << 33, 0),
      ] as [(Int64, Int64)] {
        for (kind, size) in [(.file, 0), (.file, 1 << 33), (.directory, 0)]
          as [(TarEntry.Kind, Int64)]
        {
          let entry = TarEntry(
            path: path, kind: kind, permissions: 0o751, size: size, seconds: seconds,
            nanoseconds: nanoseconds)
          #expect(try read(entry.bytes) == entry)
          #expect(entry.bytes.count.isMultiple(of: 512))
        }
      }
    }
    let link = TarEntry(path: [0x61], kind: .link, permissions: 0o777, target: long)
    #expect(try read(link.bytes) == link)
  }

  @Test("that is none is refused with a reason, whatever its bytes are")
  func malformed() throws {
    var random = SystemRandomNumberGenerator()
    let good = TarEntry(path: [0x61], kind: .file, permissions: 0o600, seconds: 1, nanoseconds: 1)
      .bytes
    #expect(try read([UInt8](repeating: 0, count: 512)) == nil)
    #expect(throws: TarEntry.Malformed.self) { try read([]) }
    for _ in 0..<300 {
      let noise = (0..<512).map { _ in UInt8.random(in: .min ... .max, using: &random) }
      #expect(throws: TarEntry.Malformed.self) { try read(noise) }
      // With a checksum that is right: it may be read, and must not crash.
      var changed = good
      for _ in 0..<4 { changed[Int.random(in: 512..<1_024, using: &random)] = noise[0] }
      do { _ = try read(changed) } catch is TarEntry.Malformed { continue }
    }
    for records in [
      "6 a=\n", "99999999999999999999 a=b\n", "5 a=b\n", "0 \n", "7 size=-1\n", "9 size=-1\n",
      "16 mtime=1.2.3.4\n", "x",
    ] {
      var entry = TarEntry(path: [], kind: .file, permissions: 0)
      #expect(throws: TarEntry.Malformed.self, "\(records)") {
        try entry.apply(records: Array(records.utf8))
      }
    }
  }
}
