import NSFileCoordination
import Synchronization
import Testing
import WormholeFiles
import WormholeSystem
import WormholeTestSupport

@Suite("The copies of conflicts as versions of a file", .blocking)
struct VersionTests {
  private let directory: TemporaryDirectory
  private var note: URL { URL(fileURLWithPath: directory.path + "/note.txt") }

  init() throws {
    directory = try TemporaryDirectory()
    // Presenters register in it, and not in the user's own.
    _ = try directory.container()
    try "old".write(to: note, atomically: false, encoding: .utf8)
  }

  private final class Heard: NSObject, NSFilePresenter, Sendable {
    let presentedItemURL: URL?
    let presentedItemOperationQueue = OperationQueue()
    private let lines = Mutex<[String]>([])
    var all: [String] { lines.withLock { $0 } }

    init(_ url: URL) { presentedItemURL = url }

    private func hear(_ line: String) { lines.withLock { $0.append(line) } }

    func presentedItemDidGain(_ version: NSFileVersion) { hear("gained \(version.isResolved)") }
    func presentedItemDidLose(_ version: NSFileVersion) { hear("lost \(version.isResolved)") }
    func presentedItemDidResolveConflict(_ version: NSFileVersion) {
      hear("resolved \(version.isResolved)")
    }
    func presentedSubitem(at url: URL, didGain version: NSFileVersion) {
      hear("gained \(url.lastPathComponent)")
    }
  }

  /// Another process changes the item, and a program that does not coordinate meanwhile.
  private func makeConflict() throws {
    let other = try Participant(directory.path)
    #expect(try other.ask("writing \(note.path) purpose=p").hasPrefix("inside"))
    #expect(try other.ask("put mine") == "done")
    try "theirs".write(to: note, atomically: false, encoding: .utf8)
    #expect(try other.ask("leave").hasPrefix("error conflict"))
  }

  private func text(_ url: URL) throws -> String { try String(contentsOf: url, encoding: .utf8) }

  private func presenting(_ url: URL, _ body: (Heard) throws -> Void) rethrows {
    let presenter = Heard(url)
    NSFileCoordinator.addFilePresenter(presenter)
    defer { NSFileCoordinator.removeFilePresenter(presenter) }
    try body(presenter)
  }

  @Test("are listed, resolved and removed, and presenters in all processes are notified")
  func conflict() throws {
    try presenting(note) { own in
      try presenting(note.deletingLastPathComponent()) { above in
        try makeConflict()
        #expect(try text(note) == "theirs")
        try eventually("both hear") {
          own.all == ["gained false"] && above.all == ["gained note.txt"]
        }
        let versions = try #require(NSFileVersion.unresolvedConflictVersionsOfItem(at: note))
        let version = try #require(versions.first)
        #expect(versions.count == 1 && version.isConflict && !version.isResolved)
        #expect(try text(version.url) == "mine")
        #expect(version.modificationDate != nil && version.localizedName == "note.txt")

        version.isResolved = true
        version.isResolved = false
        #expect(version.isResolved)
        #expect(try text(version.url) == "mine")
        #expect(NSFileVersion.unresolvedConflictVersionsOfItem(at: note) == [])
        let found = NSFileVersion.version(
          itemAt: note, forPersistentIdentifier: version.persistentIdentifier)
        #expect(found?.url == version.url && found?.isResolved == true)

        try NSFileVersion.removeOtherVersionsOfItem(at: note)
        try eventually("it hears") { own.all == ["gained false", "resolved true", "lost true"] }
        #expect(NSFileVersion.otherVersionsOfItem(at: note) == [])
        let names = try FileManager.default.contentsOfDirectory(atPath: directory.path)
        #expect(names.filter { $0.contains("note") } == ["note.txt"])
      }
    }
  }

  @Test("can replace the item, which is a version, too")
  func replacing() throws {
    let current = try #require(NSFileVersion.currentVersionOfItem(at: note))
    #expect(current.url.path == note.path && !current.isConflict && current.isResolved)
    #expect(throws: CocoaError.self) { try current.remove() }
    try makeConflict()
    let version = try #require(NSFileVersion.unresolvedConflictVersionsOfItem(at: note)?.first)
    try version.replaceItem(at: note)
    #expect(try text(note) == "mine" && text(version.url) == "mine")
    try version.replaceItem(at: note, options: .byMoving)
    #expect(NSFileVersion.otherVersionsOfItem(at: note) == [])
    let missing = note.appendingPathExtension("none")
    #expect(NSFileVersion.currentVersionOfItem(at: missing) == nil)
  }

  @Test("replace the item in one step, so that a reader always finds one")
  func oneStep() throws {
    try makeConflict()
    let version = try #require(NSFileVersion.unresolvedConflictVersionsOfItem(at: note)?.first)
    let isOver = Atomic(false)
    let misses = Atomic(0)
    let reader = DispatchQueue(label: "reader")
    let path = note.path
    reader.async {
      while !isOver.load(ordering: .relaxed) {
        if !FileManager.default.fileExists(atPath: path) { misses.add(1, ordering: .relaxed) }
      }
    }
    for _ in 0..<200 { try version.replaceItem(at: note) }
    isOver.store(true, ordering: .relaxed)
    reader.sync {}
    #expect(misses.load(ordering: .relaxed) == 0)
    // A directory changes places with the file, which is then removed.
    let folder = directory.path + "/folder"
    try makeDirectory(folder)
    #expect(try KeptCopies.put(folder, at: note.path, isCopied: false) == folder)
    #expect(try text(URL(fileURLWithPath: folder)) == "mine")
  }

  @Test("are not those of a file whose name Unicode calls equivalent")
  func equivalentNames() throws {
    let (composed, decomposed) = ("\u{E9}", "e\u{301}")
    let files = [composed, decomposed].map { URL(fileURLWithPath: directory.path + "/" + $0) }
    for file in files { try "text".write(to: file, atomically: false, encoding: .utf8) }
    try "other".write(
      toFile: directory.path + "/" + decomposed + ".conflict-18ebe0d477b5fbd8", atomically: false,
      encoding: .utf8)
    let counts = files.map { NSFileVersion.unresolvedConflictVersionsOfItem(at: $0)?.count }
    #expect(counts == [0, 1], "\(directory.listing)")
  }
}
