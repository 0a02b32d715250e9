import NSFileCoordination
import Synchronization
import Testing
import WormholeSystem
import WormholeTestSupport

@Suite("A coordinator's answers at the edges", .blocking)
final class EdgeTests {
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

    func presentedItemDidChange() { hear("changed") }
    func relinquishPresentedItem(
      toWriter writer: @escaping @Sendable ((@Sendable () -> Void)?) -> Void
    ) {
      hear("writer")
      writer(nil)
    }
    func savePresentedItemChanges(completionHandler: @escaping @Sendable ((any Error)?) -> Void) {
      hear("save")
      completionHandler(nil)
    }
  }

  private func write(_ text: String, _ coordinator: NSFileCoordinator = .init()) -> NSError? {
    var error: NSError?
    coordinator.coordinate(writingItemAt: note, error: &error) {
      do { try text.write(to: $0, atomically: false, encoding: .utf8) } catch {
        Issue.record(error)
      }
    }
    return error
  }

  private func presenting(_ url: URL, _ body: (Heard) throws -> Void) rethrows {
    let presenter = Heard(url)
    NSFileCoordinator.addFilePresenter(presenter)
    defer { NSFileCoordinator.removeFilePresenter(presenter) }
    try body(presenter)
  }

  @Test("an item whose directory is missing is read, made and deleted at its URL")
  func missingDirectory() throws {
    let folder = URL(fileURLWithPath: directory.path + "/s/t/u")
    let file = folder.appendingPathComponent("settings")
    var (error, found) = (NSError?.none, [Data?]())
    let coordinator = NSFileCoordinator(filePresenter: Heard(file))
    coordinator.coordinate(readingItemAt: file, error: &error) { url in
      // There is none, and a program then has its defaults.
      found.append(try? Data(contentsOf: url))
    }
    coordinator.coordinate(writingItemAt: file, options: .forDeleting, error: &error) { url in
      #expect(throws: CocoaError.self) { try FileManager.default.removeItem(at: url) }
    }
    coordinator.prepare(forReadingItemsAt: [file], writingItemsAt: [folder], error: &error) {
      $0()
    }
    coordinator.coordinate(writingItemAt: folder, error: &error) { url in
      do {
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
      } catch {
        Issue.record(error)
      }
    }
    #expect(error == nil && found == [nil])
    let ends = Mutex<[Bool]>([])
    let intent = NSFileAccessIntent.writingIntent(with: folder.appendingPathComponent("v/w"))
    coordinator.coordinate(with: [intent], queue: OperationQueue()) { error in
      ends.withLock { $0.append(error == nil) }
    }
    try eventually("the accessor is called") { ends.withLock { $0 } == [true] }
    coordinator.coordinate(writingItemAt: file, error: &error) { url in
      do { try Data("x".utf8).write(to: url) } catch { Issue.record(error) }
    }
    #expect(try error == nil && String(contentsOf: file, encoding: .utf8) == "x")
  }

  @Test("an accessor that reads its item in a nested access reads what it has written")
  func nestedRead() throws {
    let other = URL(fileURLWithPath: directory.path + "/beside")
    try "beside".write(to: other, atomically: false, encoding: .utf8)
    let before = try String(contentsOf: note, encoding: .utf8)
    for options: NSFileCoordinator.WritingOptions in [[], .forReplacing] {
      let coordinator = NSFileCoordinator()
      func read(_ url: URL, by coordinator: NSFileCoordinator) -> String? {
        var text: String?
        coordinator.coordinate(readingItemAt: url, error: nil) {
          // Nil is not what the caller expects.
          text = try? String(contentsOf: $0, encoding: .utf8)
        }
        return text
      }
      var error: NSError?
      coordinator.coordinate(writingItemAt: note, options: options, error: &error) { url in
        do { try "three".write(to: url, atomically: true, encoding: .utf8) } catch {
          Issue.record(error)
        }
        #expect(read(note, by: coordinator) == "three")
        #expect(read(other, by: coordinator) == "beside")
        // It is no accessor's own.
        #expect(read(note, by: NSFileCoordinator()) == before)
        // Otherwise the last expectation fails.
        try? before.write(to: url, atomically: true, encoding: .utf8)
      }
      #expect(error == nil && read(note, by: coordinator) == before)
    }
  }

  @Test("an accessor replaces its item as FileManager does, and a failure leaves it as it was")
  func replacing() throws {
    let files = FileManager.default
    try files.setAttributes([.posixPermissions: 0o640], ofItemAtPath: note.path)
    let new = URL(fileURLWithPath: directory.path + "/new")
    for options: NSFileCoordinator.WritingOptions in [[], .forReplacing] {
      try "\(options.rawValue)".write(to: new, atomically: false, encoding: .utf8)
      var error: NSError?
      NSFileCoordinator().coordinate(writingItemAt: note, options: options, error: &error) { url in
        do { _ = try files.replaceItemAt(url, withItemAt: new) } catch { Issue.record(error) }
        #expect(throws: (any Error).self) { try files.replaceItemAt(url, withItemAt: new) }
      }
      #expect(error == nil && !files.fileExists(atPath: new.path))
      #expect(try String(contentsOf: note, encoding: .utf8) == "\(options.rawValue)")
      let mode = try files.attributesOfItem(atPath: note.path)[.posixPermissions] as? NSNumber
      #expect(mode?.intValue == 0o640)
    }
    // A link stands for its target, whose mode counts.
    let link = URL(fileURLWithPath: directory.path + "/link")
    try files.createSymbolicLink(at: link, withDestinationURL: note)
    try "linked".write(to: new, atomically: false, encoding: .utf8)
    try files.replaceItemAt(link, withItemAt: new)
    let target = try files.attributesOfItem(atPath: note.path)[.posixPermissions] as? NSNumber
    #expect(try target?.intValue == 0o640 && String(contentsOf: note, encoding: .utf8) == "linked")
    // A directory with content, and an item that does not exist yet.
    for (name, content) in [("folder", "one"), ("folder", "two"), ("other", "three")] {
      try files.createDirectory(at: new, withIntermediateDirectories: true)
      try content.write(
        to: new.appendingPathComponent("x"), atomically: false, encoding: .utf8)
      let place = URL(fileURLWithPath: directory.path + "/" + name)
      try files.replaceItemAt(place, withItemAt: new, options: .usingNewMetadataOnly)
      #expect(
        try String(contentsOf: place.appendingPathComponent("x"), encoding: .utf8) == content)
      #expect(!files.fileExists(atPath: new.path))
    }
  }

  @Test("a presenter hears on after its queue's operations were cancelled")
  func cancelledOperations() throws {
    try presenting(note) { presenter in
      let queue = presenter.presentedItemOperationQueue
      queue.isSuspended = true
      let error = write("new")
      queue.cancelAllOperations()
      queue.isSuspended = false
      #expect(error == nil)
      try eventually("it hears of the change") { presenter.all.contains("changed") }
    }
  }

  @Test("an accessor of intents is called once, whatever becomes of its changes")
  func once() throws {
    let calls = Mutex<[String]>([])
    let queue = OperationQueue()
    let intent = NSFileAccessIntent.writingIntent(with: note)
    NSFileCoordinator().coordinate(with: [intent], queue: queue) { error in
      calls.withLock { $0.append("\(error == nil)") }
      do { try FileManager.default.removeItem(at: intent.url) } catch { Issue.record(error) }
    }
    try eventually("it is called") { calls.withLock { !$0.isEmpty } }
    // The next access begins when that one has ended.
    #expect(write("new") == nil)
    queue.waitUntilAllOperationsAreFinished()
    #expect(calls.withLock { $0 } == ["true"])
    queue.isSuspended = true
    NSFileCoordinator().coordinate(with: [.readingIntent(with: note)], queue: queue) { error in
      calls.withLock { $0.append("\((error as? CocoaError)?.code == .userCancelled)") }
    }
    try eventually("it waits") { queue.operationCount == 1 }
    queue.cancelAllOperations()
    queue.isSuspended = false
    try eventually("it is called") { calls.withLock { $0.count == 2 } }
    #expect(calls.withLock { $0.last } == "true")
  }

  @Test("a coordinator does not wait for its own reading", arguments: [false, true])
  func nested(hasPresenter: Bool) throws {
    let presenter = hasPresenter ? Heard(note) : nil
    let outer = NSFileCoordinator(filePresenter: presenter)
    let inner = hasPresenter ? NSFileCoordinator(filePresenter: presenter) : outer
    var (error, failure): (NSError?, NSError?)
    outer.coordinate(readingItemAt: note, error: &error) { _ in failure = write("new", inner) }
    #expect(error == nil && failure == nil)
    #expect(try String(contentsOf: note, encoding: .utf8) == "new")
  }

  @Test("a directory's URL ends with a slash, so that a relative one lies in it")
  func relative() throws {
    let place = URL(fileURLWithPath: directory.path + "/folder", isDirectory: true)
    try makeDirectory(place.path)
    var error: NSError?
    NSFileCoordinator().coordinate(writingItemAt: place, error: &error) { url in
      do {
        let file = URL(fileURLWithPath: "x", relativeTo: url)
        try "here".write(to: file, atomically: false, encoding: .utf8)
      } catch { Issue.record(error) }
    }
    #expect(error == nil)
    #expect(FileManager.default.fileExists(atPath: place.path + "/x"), "\(directory.listing)")
  }

  @Test(
    "a preparation asks the presenters of what is inside, and no more than was asked is left out")
  func preparation() throws {
    presenting(note) { presenter in
      let coordinator = NSFileCoordinator()
      var error: NSError?
      let place = URL(fileURLWithPath: directory.path, isDirectory: true)
      coordinator.prepare(forReadingItemsAt: [place], writingItemsAt: [], error: &error) { done in
        #expect(presenter.all == ["save"])
        var failure: NSError?
        coordinator.coordinate(readingItemAt: note, error: &failure) { _ in }
        #expect(failure == nil && presenter.all == ["save"])
        done()
      }
      coordinator.prepare(forReadingItemsAt: [note], writingItemsAt: [], error: &error) { done in
        #expect(presenter.all == ["save", "save"])
        _ = write("new", coordinator)
        #expect(presenter.all.prefix(3) == ["save", "save", "writer"])
        done()
      }
      #expect(error == nil)
    }
  }

  @Test(
    "other files with such a name are no versions, and a link's versions are those of its target")
  func versions() throws {
    let files = ["note.txt.conflict-resolution.txt", "note.txt.resolved-by-anna"]
    for name in files + ["note.txt.conflict-18ebe0d477b5fbd8"] {
      try name.write(toFile: directory.path + "/" + name, atomically: false, encoding: .utf8)
    }
    let link = URL(fileURLWithPath: directory.path + "/link")
    try FileManager.default.createSymbolicLink(at: link, withDestinationURL: note)
    var error: NSError?
    NSFileCoordinator().coordinate(writingItemAt: note, error: &error) { url in
      #expect(NSFileVersion.unresolvedConflictVersionsOfItem(at: url)?.count == 1)
    }
    let version = try #require(NSFileVersion.unresolvedConflictVersionsOfItem(at: link)?.first)
    try version.replaceItem(at: link)
    #expect(try fileStatus(link.path).kind == .symbolicLink)
    #expect(try String(contentsOf: note, encoding: .utf8).hasPrefix("note.txt.conflict-"))
    try NSFileVersion.removeOtherVersionsOfItem(at: note)
    let left = try FileManager.default.contentsOfDirectory(atPath: directory.path).sorted()
    #expect(left == ["container.plist", "link", "note.txt"] + files)
  }
}
