import FoundationEssentials
import Testing
import Wormhole
import WormholePropertyLists
import WormholeSystem
import WormholeTestSupport
import WormholeToolkit

@testable import WormholeInspection

@Suite("The backup of a container", .blocking)
struct BackupTests {
  private let scene: CopyScene

  init() throws { scene = try CopyScene() }

  private var directory: String { scene.directory.path }

  /// - Parameter staging: Where it is composed; by default in this test's directory.
  @discardableResult
  private func backup(
    _ source: SharedContainer, in staging: String? = nil
  ) throws -> ContainerCopy.Summary {
    let file = try FileDescriptor.open(
      directory + "/archive", [.writeOnly, .create, .truncate])
    return try ContainerBackup(of: source).run(
      "archive", to: file.rawValue, stagedIn: staging ?? directory, until: soon)
  }

  private func bytes() throws -> [UInt8] {
    try FileDescriptor.open(directory + "/archive", .readOnly)
      .readToEnd(expectedBytes: 0, maximumBytes: 16 << 20)
  }

  /// - Parameter staging: As of `backup`.
  private func restore(to place: String, in staging: String? = nil) throws {
    let file = try FileDescriptor.open(directory + "/archive", .readOnly)
    _ = try ContainerBackup.restore(
      "archive", from: file.rawValue, to: place, group: nil, stagedIn: staging ?? directory,
      until: soon)
  }

  private func restore(_ bytes: [UInt8], to place: String) throws {
    try write(bytes)
    try restore(to: place)
  }

  private func write(_ bytes: [UInt8]) throws {
    try FileDescriptor.open(directory + "/archive", [.writeOnly, .create, .truncate])
      .writeAll(bytes)
  }

  @Test("has everything that outlives processes, as its users find it", arguments: CopyTests.ways)
  func complete(way: [TestEngine]) throws {
    let source = try scene.container(way[0], "source")
    try scene.fill(source)
    #expect(try backup(source).faults.all.isEmpty)
    let place = try scene.place(way[1], "other")
    try restore(to: place)
    let original = try scene.description(of: source)
    let difference = try scene.description(of: scene.open(place)).difference(from: original)
    #expect(difference.isEmpty && original.count > 40, "\(difference)")
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
    let file = try FileDescriptor.open(path + deep + "/file", [.readWrite, .create])
    try file.writeAll(Array(repeating: 7, count: 700_001))
    // Whatever this process's mask is.
    try file.setPermissions(0o4666)
    try file.setModified(seconds: -5, nanoseconds: 250_000_000)
    for (name, target) in [("link", "/away"), ("up", "../../x"), ("beside", "deep")] {
      let link = FileName(path + "/" + name)
      try makeSymbolicLink(link, at: Directory.current, target: FileName(target))
    }
    try makeFIFO(FileName(path + "/fifo"), at: Directory.current)
    try setPermissions(FileName(path + "/deep"), at: Directory.current, 0o500)
    #expect(try backup(source).faults.all.isEmpty)
    try restore(to: directory + "/other")
    let other = directory + "/other"
    let status = try fileStatus(other + deep + "/file")
    #expect(status.size == 700_001 && status.permissions == 0o666)
    #expect(status.modifiedSeconds == -5 && status.modifiedNanoseconds == 250_000_000)
    #expect(try linkTarget(other + "/link") == "/away" && linkTarget(other + "/up") == "../../x")
    #expect(try linkTarget(other + "/beside") == "deep")
    #expect(try fileStatus(other + "/fifo").kind == .fifo)
    #expect(try fileStatus(other + "/deep").permissions == 0o500)
    // So that the directory can be removed.
    for place in [path, other] {
      try setPermissions(FileName(place + "/deep"), at: Directory.current, 0o700)
    }
  }

  @Test("leaves out what is too deep for tar(1), and says so")
  func leftOut() throws {
    let source = try scene.container(.directory, "source")
    let path = directory + "/source"
    try makeDirectory(path + "/kept")
    try FileDescriptor.open(path + "/kept/file", [.writeOnly, .create]).writeAll([1])
    let name = String(repeating: "d", count: 250)
    var place = try FileDescriptor.open(path, [.pathOnly, .directory])
    for _ in 0..<20 {
      try makeDirectory(name, at: place.rawValue)
      place = try FileDescriptor.open(name, at: place.rawValue, [.pathOnly, .directory])
    }
    let faults = try backup(source).faults.all
    #expect(faults.count == 1 && faults[0].path.hasSuffix("/" + name), "\(faults)")
    let other = directory + "/other"
    try restore(to: other)
    #expect(try fileStatus(other + "/kept/file").size == 1)
    for place in [path, other] {
      let open = try FileDescriptor.open(place, [.readOnly, .directory])
      #expect(try exists(name, at: open.rawValue))
      try TreeRemoval().remove(FileName(name), at: open.rawValue)
    }
  }

  @Test("is made again whatever the times, names and modes of a group's files are")
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
    let names = [".new-notes", ".container-notes", "-C", "--to-command=false", "a\\nb", "*", "@f"]
    for name in names {
      try FileDescriptor.open(memory.path + "/" + name, [.writeOnly, .create]).writeAll([1])
    }
    for (name, mode) in [("sticky", UInt32(0o1777)), ("shared", 0o2750)] {
      try makeDirectory(memory.path + "/" + name)
      try setPermissions(FileName(memory.path + "/" + name), at: Directory.current, mode)
    }
    let target = try TemporaryDirectory(under: "/dev/shm")
    let other = target.path + "/other"
    try backup(source, in: target.path)
    try restore(to: other, in: target.path)
    for index in times.indices {
      let (now, before) = (
        try fileStatus("\(other)/\(index)"), try fileStatus("\(memory.path)/\(index)")
      )
      #expect(now.modifiedSeconds == before.modifiedSeconds)
      #expect(now.modifiedNanoseconds == before.modifiedNanoseconds)
    }
    for name in names { #expect(try fileStatus(other + "/" + name).size == 1, "\(name)") }
    #expect(try fileStatus(other + "/sticky").permissions == 0o1777)
    #expect(try fileStatus(other + "/shared").permissions == 0o2750)
  }

  @Test(
    "is refused after any change of its content, and where it ends too early; nothing is made then")
  func damaged() throws {
    let source = try scene.container(.directory, "source")
    try source.value("x").replace(with: ["a": "b"])
    try FileDescriptor.open(directory + "/source/notes", [.writeOnly, .create]).writeAll([1, 2, 3])
    try backup(source)
    let bytes = try bytes()
    #expect(try run("gzip -dc <archive >plain"))
    let place = directory + "/other"
    func refuse(_ bytes: [UInt8], _ what: String) throws {
      let error = #expect(throws: WormholeError.self, "\(what)") { try restore(bytes, to: place) }
      #expect(error?.code == .damaged, "\(what): \(error as Any)")
    }
    // Of the ten bytes of the head, those after the first three say nothing about the content.
    for position in Array(0..<3) + Array(stride(from: 10, to: bytes.count, by: 7)) {
      var changed = bytes
      changed[position] ^= 1 << UInt8(position % 8)
      try write(changed)
      // The same bytes may be packed in more than one way.
      if try run("gzip -dc <archive 2>&1 | cmp -s plain -") { continue }
      try refuse(changed, "bit \(position % 8) of byte \(position) of \(bytes.count)")
    }
    for length in Array(stride(from: 0, to: bytes.count, by: 11)) + [bytes.count - 1] {
      try refuse(Array(bytes[..<length]), "\(length) bytes of \(bytes.count)")
    }
    try refuse(bytes + [1], "one byte more")
    try refuse(bytes + [UInt8](repeating: 0, count: 5_000) + [7], "many bytes more")
    #expect(try leftovers() == [])
    #expect(throws: Errno.noSuchFile) { try fileStatus(place) }
    // As some devices fill their last block.
    try restore(bytes + [UInt8](repeating: 0, count: 9_216), to: place)
  }

  /// Makes an archive with a container that a script has changed.
  ///
  /// - Parameter script: Has the container as `container`, and makes the file `archive`.
  private func pack(_ script: String) throws {
    try makeDirectory(directory + "/work", mode: 0o700)
    try makeDirectory(directory + "/work/container", mode: 0o700)
    _ = try SharedContainer(path: directory + "/work/container")
    #expect(try run("cd work; \(script)"))
  }

  /// Runs a script in the test's directory, and returns whether it has succeeded.
  private func run(_ script: String) throws -> Bool {
    let shell = try ChildProcess("sh", ["-ec", "cd '\(directory)'; \(script)"])
    return try shell.wait(until: soon) == .exited(0)
  }

  @Test(
    "that leads elsewhere, or is none of a container, is refused, and makes nothing outside its place",
    arguments: [
      (
        "a link in the container's place",
        "ln -s /etc c; tar -czf ../archive --transform s/c/container/ c"
      ),
      (
        "a second name",
        "echo 1 >container/a; ln container/a container/b; tar -czf ../archive container"
      ),
      (
        "a name that leads up",
        "echo 1 >container/a; tar -czPf ../archive --transform s,container/a,container/../../evil, container"
      ),
      (
        "a file behind a link",
        """
        mkdir other; ln -s ../.. container/link; tar -cf ../archive container; rm container/link
        mkdir container/link; echo 1 >container/link/evil; tar -rf ../archive container/link/evil
        gzip -n <../archive >packed; mv packed ../archive
        """
      ),
      ("an absolute name", "tar -czPf ../archive \"$PWD/container\""),
      ("no container", "mkdir evil; tar -czf ../archive evil"),
      ("nothing", "tar -czf ../archive --files-from=/dev/null"),
      (
        "a file as the container",
        "echo 1 >evil; tar -czf ../archive --transform s/evil/container/ evil"
      ),
      ("no archive", "echo container | gzip >../archive"),
      ("an archive that is not packed", "tar -cf ../archive container"),
    ])
  func hostile(name: String, script: String) throws {
    try pack(script)
    let error = #expect(throws: WormholeError.self) { try restore(to: directory + "/other") }
    #expect(error?.code == .damaged, "\(name): \(error as Any)")
    #expect(error?.description.contains("the backup is damaged: ") == true, "\(error as Any)")
    let names = try FileDescriptor.open(directory, [.readOnly, .directory]).entries()
      .map(\.name.text).sorted()
    #expect(names == ["archive", "work"], "\(name)")
  }

  @Test("of a newer format is refused as such, and one without a container's mark is none")
  func versions() throws {
    let script = "tar -czf ../archive container"
    let file = directory + "/work/container/container.plist"
    try pack("rm container/container.plist; \(script)")
    let error = #expect(throws: WormholeError.self) { try restore(to: directory + "/other") }
    #expect(error?.code == .damaged, "\(error as Any)")
    try FileDescriptor.open(file, [.writeOnly, .create])
      .writeAll(try (["formatVersion": 3] as PropertyListValue).binaryBytes())
    #expect(try run("cd work; \(script)"))
    let newer = #expect(throws: WormholeError.self) { try restore(to: directory + "/other") }
    #expect(newer?.code == .formatTooNew, "\(newer as Any)")
    #expect(try leftovers() == [])
  }

  @Test("is refused while there is something in its place, which stays")
  func taken() throws {
    let source = try scene.container(.directory, "source")
    try source.value("x").replace(with: 1)
    try backup(source)
    let error = #expect(throws: WormholeError.self) { try restore(to: directory + "/source") }
    #expect(error?.code == .nameCollision)
    #expect(try source.value("x").read() == 1 && leftovers() == [])
  }
}
