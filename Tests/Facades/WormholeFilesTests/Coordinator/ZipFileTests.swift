import Foundation
import Testing
import Wormhole
import WormholeFiles
import WormholeTestSupport

@Suite("The zip file of a directory that is uploaded", .blocking)
struct ZipFileTests {
  let directory: TemporaryDirectory
  let tree: URL

  init() throws {
    directory = try TemporaryDirectory()
    tree = URL(filePath: directory.path + "/Reise é")
    try FileManager.default.createDirectory(at: tree, withIntermediateDirectories: false)
  }

  private func put(_ name: String, _ bytes: Int, mode: Int = 0o644) throws {
    let place = tree.appending(path: name)
    try FileManager.default.createDirectory(
      at: place.deletingLastPathComponent(), withIntermediateDirectories: true)
    let content = (0..<bytes).map { UInt8(truncatingIfNeeded: $0 &* 31 ^ $0 >> 8) }
    try Data(content).write(to: place)
    try FileManager.default.setAttributes(
      [
        .posixPermissions: mode,
        .modificationDate: Date(timeIntervalSince1970: 1_234_567_890),
      ], ofItemAtPath: place.path)
  }

  private func zipped(_ body: (URL) throws -> Void) throws {
    try FileCoordinator().coordinate(readingItemAt: tree, options: .forUploading) { zip in
      #expect(zip.lastPathComponent == "Reise é.zip")
      try body(zip)
    }
  }

  /// Runs a program that has to succeed.
  private func run(_ program: String, _ arguments: String...) throws -> String {
    let process = Process()
    process.executableURL = URL(filePath: "/usr/bin/env")
    process.arguments = [program] + arguments
    let output = Pipe()
    process.standardOutput = output
    process.standardError = output
    try process.run()
    let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    process.waitUntilExit()
    #expect(process.terminationStatus == 0, "\(program) \(arguments): \(text)")
    return text
  }

  private static func isInstalled(_ program: String) -> Bool {
    let places = ProcessInfo.processInfo.environment["PATH"]?.split(separator: ":") ?? []
    return places.contains { FileManager.default.isExecutableFile(atPath: "\($0)/\(program)") }
  }

  /// Prints what Python finds in a zip file, after it has checked each checksum.
  private static let script = """
    import sys, zipfile
    with zipfile.ZipFile(sys.argv[1]) as zip:
        assert zip.testzip() is None
        for entry in sorted(zip.infolist(), key=lambda entry: entry.filename):
            mode = oct(entry.external_attr >> 16)
            content = zip.read(entry)
            link = content.decode() if mode.startswith('0o12') else len(content)
            print(entry.filename, mode, link, entry.date_time[0])
    """

  private static let hasPrograms = isInstalled("python3") && isInstalled("unzip")

  @Test(
    "has directories, files and links, with their names, modes and times",
    .enabled(if: hasPrograms, "python3 or unzip is missing"))
  func content() throws {
    try put("leer", 0)
    try put("a/b/ü \u{1F600}.txt", 7)
    try put("run", 3, mode: 0o755)
    try put("large", 3 << 20 | 5)
    let files = FileManager.default
    try files.createDirectory(
      at: tree.appending(path: "nothing"), withIntermediateDirectories: false)
    try files.createSymbolicLink(
      atPath: tree.path + "/link", withDestinationPath: "a/b/nowhere")
    #expect(mkfifo(tree.path + "/pipe", 0o600) == 0)
    try zipped { zip in
      let list = try run("python3", "-c", Self.script, zip.path)
      let year = Calendar.current.component(.year, from: Date())
      let expected = [
        "/ 0o40755 0 \(year)", "/a/ 0o40755 0 \(year)", "/a/b/ 0o40755 0 \(year)",
        "/a/b/ü \u{1F600}.txt 0o100644 7 2009", "/large 0o100644 3145733 2009",
        "/leer 0o100644 0 2009", "/link 0o120777 a/b/nowhere \(year)",
        "/nothing/ 0o40755 0 \(year)", "/run 0o100755 3 2009",
      ]
      #expect(list == expected.map { "Reise é\($0)\n" }.joined())
      _ = try run("unzip", "-tqq", zip.path)
      let place = directory.path + "/out"
      _ = try run("unzip", "-qq", zip.path, "-d", place)
      try files.removeItem(atPath: tree.path + "/pipe")
      _ = try run("diff", "-r", "--no-dereference", tree.path, place + "/Reise é")
      let times = try ["run", "a/b/ü \u{1F600}.txt"].map {
        try files.attributesOfItem(atPath: place + "/Reise é/" + $0)[.modificationDate] as? Date
      }
      #expect(times == Array(repeating: Date(timeIntervalSince1970: 1_234_567_890), count: 2))
    }
  }

  @Test(
    "has more entries than 16 bits can count",
    .enabled(if: hasPrograms, "python3 or unzip is missing"))
  func manyEntries() throws {
    try put("0", 1)
    for number in 1..<66_000 {
      guard link(tree.path + "/0", tree.path + "/\(number)") == 0 else {
        // A file of ext4 has 65,000 names.
        try put("\(number)", 1)
        continue
      }
    }
    try zipped { zip in
      let count = "import sys, zipfile; print(len(zipfile.ZipFile(sys.argv[1]).infolist()))"
      let counts = (
        try run("python3", "-c", count, zip.path), try run("unzip", "-Z", "-h", zip.path)
      )
      #expect(counts.0 == "66001\n" && counts.1.contains("entries: 66001"), "\(counts)")
    }
  }

  @Test(
    "holds the times that DOS has, and the nearest of them for any other time",
    .enabled(if: hasPrograms, "python3 or unzip is missing"))
  func times() throws {
    for (name, seconds) in [("old", -9e18), ("new", 9e18), ("dos", 1e9)] {
      try put(name, 1)
      var times = [timespec(), timespec(tv_sec: Int(seconds), tv_nsec: 0)]
      times[0].tv_nsec = (1 << 30) - 2  // UTIME_OMIT
      #expect(utimensat(AT_FDCWD, tree.path + "/" + name, times, 0) == 0)
    }
    try zipped { zip in
      let years = try run("python3", "-c", Self.script, zip.path).split(separator: "\n")
        .compactMap { $0.split(separator: " ").last.flatMap { Int($0) } }
      #expect(years.contains(1980) && years.contains(2107) && years.contains(2001), "\(years)")
    }
  }

  @Test("does not change with the directory, and is gone afterwards")
  func snapshot() throws {
    try put("a", 5)
    var place = ""
    try zipped { zip in
      place = zip.path
      let before = try Data(contentsOf: zip)
      try FileCoordinator().coordinate(writingItemAt: tree.appending(path: "a")) {
        try Data("new".utf8).write(to: $0)
      }
      #expect(try Data(contentsOf: zip) == before)
      #expect(before.starts(with: "PK".utf8))
    }
    #expect(!FileManager.default.fileExists(atPath: place))
    #expect(try FileManager.default.contentsOfDirectory(atPath: directory.path) == ["Reise é"])
    #expect(try FileManager.default.contentsOfDirectory(atPath: tree.path) == ["a"])
  }

  @Test("of a large file takes no more memory than that of a small one")
  func memory() throws {
    let participant = try Participant(directory.path)
    func peak() throws -> Int { try #require(Int(try participant.ask("memory"))) }
    let plain = directory.path + "/plain"
    try put("a", 5)
    try FileManager.default.moveItem(atPath: tree.path, toPath: plain)
    #expect(try participant.ask("uploading \(plain)").hasPrefix("inside "))
    #expect(try participant.ask("leave") == "done")
    let before = try peak()
    #expect(truncate(plain + "/a", 200 << 20) == 0)
    #expect(try participant.ask("uploading \(plain)").hasPrefix("inside "))
    let grown = try peak() - before
    print("200 MiB: \(grown) KiB more memory")
    #expect(grown < 20_000)
    #expect(try participant.ask("leave") == "done")
  }
}
