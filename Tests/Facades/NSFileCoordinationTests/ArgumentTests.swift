import NSFileCoordination
import Synchronization
import Testing
import Wormhole
import WormholeTestSupport

/// Arguments that the original's header forbids, that real code passes nevertheless, and that ended the
/// process here.
@Suite("No argument ends the process: coordinators", .blocking)
final class ArgumentTests {
  private let directory: TemporaryDirectory
  private var note: URL { URL(fileURLWithPath: directory.path + "/note.txt") }

  init() throws {
    directory = try TemporaryDirectory()
    _ = try directory.container()
    try "old".write(to: note, atomically: false, encoding: .utf8)
  }

  @Test(
    "a preparation takes every option",
    arguments: [[], .withoutChanges, .resolvesSymbolicLink, .forUploading]
      as [NSFileCoordinator.ReadingOptions],
    [.forReplacing, [.forMoving, .forReplacing], .forDeleting, .forMerging, []]
      as [NSFileCoordinator.WritingOptions])
  func preparing(
    reading: NSFileCoordinator.ReadingOptions, writing: NSFileCoordinator.WritingOptions
  )
    throws
  {
    let coordinator = NSFileCoordinator()
    var (error, failure): (NSError?, NSError?)
    var runs = 0
    coordinator.prepare(
      forReadingItemsAt: [note], options: reading, writingItemsAt: [note], options: writing,
      error: &error
    ) { done in
      coordinator.coordinate(writingItemAt: note, options: .forReplacing, error: &failure) {
        do { try Data("new".utf8).write(to: $0) } catch { Issue.record(error) }
        runs += 1
      }
      done()
    }
    #expect(error == nil && failure == nil && runs == 1)
    #expect(try String(contentsOf: note, encoding: .utf8) == "new")
  }

  @Test("a purpose that is empty, set twice or of a presenter stays as it was")
  func purposes() {
    final class Document: NSObject, NSFilePresenter {
      var presentedItemURL: URL? { nil }
      var presentedItemOperationQueue: OperationQueue { .main }
    }
    let coordinator = NSFileCoordinator()
    let first = coordinator.purposeIdentifier
    coordinator.purposeIdentifier = ""
    #expect(coordinator.purposeIdentifier == first)
    coordinator.purposeIdentifier = "p"
    coordinator.purposeIdentifier = "q"
    #expect(coordinator.purposeIdentifier == "p")
    let document = Document()
    let own = NSFileCoordinator(filePresenter: document)
    let known = own.purposeIdentifier
    own.purposeIdentifier = "r"
    #expect(own.purposeIdentifier == known)
  }

  /// Any URL, any combination of options, any number of items: an error, or the access.
  @Test("an access takes any URL, any options and any number of items")
  func accesses() throws {
    let urls =
      [note, URL(fileURLWithPath: directory.path)]
      + ["", "x", "http:", "https://example.com/a", "file:", "file:///%00", "file:///%FF/x"]
      .compactMap { URL(string: $0) }
      + [URL(fileURLWithPath: directory.path + "/a\0b"), URL(fileURLWithPath: "~/x")]
      + [URL(fileURLWithPath: directory.path + "/" + String(repeating: "n", count: 5000))]
    let presenter = Presenter(nil)
    for url in urls {
      for bits: UInt in [0, 1, 3, 12, 15, 31, 1 << 40] {
        var error: NSError?
        let coordinator = NSFileCoordinator()
        let reading = NSFileCoordinator.ReadingOptions(rawValue: bits)
        coordinator.coordinate(readingItemAt: url, options: reading, error: &error) { _ in }
        coordinator.item(at: url, willMoveTo: note)
        coordinator.item(at: url, didMoveTo: url)
        if url.path != directory.path {
          let writing = NSFileCoordinator.WritingOptions(rawValue: bits)
          coordinator.coordinate(writingItemAt: url, options: writing, error: &error) { _ in }
          coordinator.coordinate(
            writingItemAt: url, options: writing, writingItemAt: url, options: [], error: &error
          ) { _, _ in }
          coordinator.coordinate(
            readingItemAt: url, options: reading, writingItemAt: url, options: writing,
            error: &error
          ) { _, _ in }
        }
      }
      NSFileCoordinator.removeFilePresenter(presenter)
      _ = NSFileVersion.currentVersionOfItem(at: url)
      _ = NSFileVersion.unresolvedConflictVersionsOfItem(at: url)
      // Elsewhere it would register in the user's own container.
      guard url.path.hasPrefix(directory.path) else { continue }
      let asked = Presenter(url)
      NSFileCoordinator.addFilePresenter(asked)
      NSFileCoordinator.addFilePresenter(asked)
      for _ in 0..<3 { NSFileCoordinator.removeFilePresenter(asked) }
    }
    let ends = Heard<Bool>()
    NSFileCoordinator().coordinate(with: [], queue: OperationQueue()) { ends.add($0 == nil) }
    try eventually("without items the accessor is called") { ends.all == [true] }
    var runs = 0
    NSFileCoordinator().prepare(forReadingItemsAt: [], writingItemsAt: [], error: nil) { done in
      runs += 1
      done()
      done()
    }
    #expect(runs == 1)
    #expect(try String(contentsOf: note, encoding: .utf8) == "old")
  }

  private final class Presenter: NSObject, NSFilePresenter, Sendable {
    let presentedItemURL: URL?
    let presentedItemOperationQueue = OperationQueue()
    init(_ url: URL?) { presentedItemURL = url }
  }
}
