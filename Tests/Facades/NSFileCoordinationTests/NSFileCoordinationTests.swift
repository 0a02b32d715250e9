import NSFileCoordination
import Synchronization
import Testing
import WormholeFoundationClients
import WormholeTestSupport

@Suite("Code written for NSFileCoordinator", .blocking)
final class NSFileCoordinationTests {
  private let directory: TemporaryDirectory
  private var note: URL { URL(fileURLWithPath: directory.path + "/note.txt") }

  init() throws {
    directory = try TemporaryDirectory()
    // Presenters register in it, and not in the user's own.
    _ = try directory.container()
  }

  private func text(_ url: URL) throws -> String { try String(contentsOf: url, encoding: .utf8) }

  // For accessors, which cannot throw.
  private func read(_ url: URL) -> String {
    do { return try text(url) } catch { return "\(error)" }
  }

  private func write(_ text: String, _ url: URL) {
    do {
      try text.write(to: url, atomically: true, encoding: .utf8)
    } catch {
      Issue.record("\(error)")
    }
  }

  @Test("reads, writes and hears of the changes of others")
  func document() throws {
    try "one".write(to: note, atomically: true, encoding: .utf8)
    let document = NoteDocument(fileURL: note)
    try document.open()
    defer { document.close() }
    #expect(document.text == "one")
    document.text = "two"
    try document.save()
    #expect(try text(note) == "two")
    #expect(NSFileCoordinator.filePresenters.contains { $0 === document })

    var error: NSError?
    NSFileCoordinator().coordinate(writingItemAt: note, error: &error) {
      write("three", $0)
    }
    #expect(error == nil)
    try eventually("the document is loaded again") { document.text == "three" }
  }

  @Test("saves its changes before another one reads, and is not asked after its removal")
  func saving() throws {
    try "old".write(to: note, atomically: true, encoding: .utf8)
    let document = NoteDocument(fileURL: note)
    try document.open()
    document.text = "unsaved"
    document.hasUnsavedChanges = true
    var content = ""
    var error: NSError?
    NSFileCoordinator().coordinate(readingItemAt: note, error: &error) {
      content = self.read($0)
    }
    #expect(error == nil)
    #expect(content == "unsaved")
    document.close()
    document.text = "unsaved again"
    document.hasUnsavedChanges = true
    NSFileCoordinator().coordinate(readingItemAt: note, error: &error) {
      content = self.read($0)
    }
    #expect(content == "unsaved")
    #expect(NSFileCoordinator.filePresenters.allSatisfy { $0 !== document })
  }

  @Test("moves a file, and writes several through intents on a queue")
  func forms() throws {
    try "a".write(to: note, atomically: true, encoding: .utf8)
    let moved = URL(fileURLWithPath: directory.path + "/moved.txt")
    #expect(NoteFiles.move(note, to: moved) == nil)
    #expect(!FileManager.default.fileExists(atPath: note.path))
    #expect(try text(moved) == "a")
    let ends = Mutex<[Bool]>([])
    NoteFiles.append("b", to: moved) { error in ends.withLock { $0.append(error == nil) } }
    try eventually("it is published") { try self.text(moved) == "ab" }
    #expect(ends.withLock { $0 } == [true])
  }

  @Test("gets the original's errors, and its accessor is not run")
  func errors() throws {
    var error: NSError?
    var runs = 0
    let missing = URL(fileURLWithPath: directory.path + "/none/note.txt")
    NSFileCoordinator().coordinate(
      readingItemAt: missing, options: .forUploading, error: &error
    ) { _ in runs += 1 }
    #expect(error?.domain == NSCocoaErrorDomain)
    #expect(error?.code == CocoaError.Code.fileNoSuchFile.rawValue)
    #expect(error?.localizedDescription.contains("no such directory") == true, "\(error as Any)")

    // The other access lasts until this one was given up.
    try "x".write(to: note, atomically: true, encoding: .utf8)
    let coordinator = NSFileCoordinator()
    let ends = Ends()
    error = nil
    NSFileCoordinator().coordinate(writingItemAt: note, error: nil) { _ in
      Thread { [note] in
        var failure: NSError?
        coordinator.coordinate(writingItemAt: note, error: &failure) { _ in ends.add("ran") }
        ends.add("\(failure?.code ?? 0)")
      }.start()
      do {
        try eventually("it is given up") {
          coordinator.cancel()
          return !ends.all.isEmpty
        }
      } catch {
        Issue.record("\(error)")
      }
    }
    #expect(ends.all == ["\(CocoaError.Code.userCancelled.rawValue)"])
    #expect(runs == 0)
  }

  @Test("stops waiting for presenters when it is cancelled, and runs no accessor after that")
  func cancelling() throws {
    try "x".write(to: note, atomically: true, encoding: .utf8)
    let coordinator = NSFileCoordinator()
    let presenter = SilentNote(note) { coordinator.cancel() }
    NSFileCoordinator.addFilePresenter(presenter)
    defer { NSFileCoordinator.removeFilePresenter(presenter) }
    let runs = Ends()
    func expectCancelled(_ access: (NSErrorPointer) -> Void) {
      var error: NSError?
      access(&error)
      #expect(error?.domain == NSCocoaErrorDomain)
      #expect(error?.code == CocoaError.Code.userCancelled.rawValue)
    }
    let prepare = { (error: NSErrorPointer) in
      coordinator.prepare(forReadingItemsAt: [], writingItemsAt: [self.note], error: error) {
        runs.add("prepared")
        $0()
      }
    }
    expectCancelled(prepare)
    // It lasts.
    expectCancelled(prepare)
    expectCancelled {
      coordinator.coordinate(readingItemAt: note, error: $0) { _ in runs.add("read") }
    }
    expectCancelled {
      coordinator.coordinate(writingItemAt: note, error: $0) { _ in runs.add("written") }
    }
    let ends = Ends()
    coordinator.coordinate(with: [.readingIntent(with: note)], queue: OperationQueue()) { error in
      ends.add("\((error as NSError?)?.code ?? 0)")
    }
    try eventually("the accessor gets the error") {
      ends.all == ["\(CocoaError.Code.userCancelled.rawValue)"]
    }
    #expect(runs.all == [])
  }

  /// It used to see nothing there, so that its `removeItem` failed and nothing was written.
  @Test("finds the item that it is to replace, and removes it first", arguments: [false, true])
  func replacing(isDirectory: Bool) throws {
    let inside = isDirectory ? note.appendingPathComponent("one") : note
    if isDirectory {
      try FileManager.default.createDirectory(at: note, withIntermediateDirectories: false)
    }
    try "old".write(to: inside, atomically: false, encoding: .utf8)
    var error: NSError?
    NSFileCoordinator().coordinate(writingItemAt: note, options: .forReplacing, error: &error) {
      do {
        #expect(read(isDirectory ? $0.appendingPathComponent("one") : $0) == "old")
        // Not the item itself, which readers have.
        let old = try FileHandle(forWritingTo: isDirectory ? $0.appendingPathComponent("one") : $0)
        try old.write(contentsOf: Data("???".utf8))
        try old.close()
        #expect(read(inside) == "old")
        try FileManager.default.removeItem(at: $0)
        try "new".write(to: $0, atomically: false, encoding: .utf8)
      } catch {
        Issue.record("\(error)")
      }
    }
    #expect(error == nil)
    #expect(try text(note) == "new")
    #expect(directory.listing.isEmpty == false)
  }

  /// It used to set an error although the accessor had run, and to keep the item.
  @Test(
    "lets an accessor remove, move and replace its item under any option",
    arguments: [[], .forDeleting, .forMoving, .forMerging, .forReplacing]
      as [NSFileCoordinator.WritingOptions])
  func anyChange(options: NSFileCoordinator.WritingOptions) throws {
    let files = FileManager.default
    let (moved, new) = (note.appendingPathExtension("moved"), note.appendingPathExtension("new"))
    func coordinate(_ change: (URL) throws -> Void) throws {
      try "old".write(to: note, atomically: true, encoding: .utf8)
      var error: NSError?
      var runs = 0
      NSFileCoordinator().coordinate(writingItemAt: note, options: options, error: &error) {
        runs += 1
        do { try change($0) } catch { Issue.record(error) }
      }
      #expect(error == nil && runs == 1)
    }
    try coordinate { try files.removeItem(at: $0) }
    #expect(!files.fileExists(atPath: note.path))
    try coordinate { try files.moveItem(at: $0, to: moved) }
    #expect(try !files.fileExists(atPath: note.path) && text(moved) == "old")
    try files.removeItem(at: moved)
    try "new".write(to: new, atomically: true, encoding: .utf8)
    try coordinate { _ = try files.replaceItemAt($0, withItemAt: new) }
    #expect(try text(note) == "new" && !files.fileExists(atPath: new.path))
  }

  /// Each of these used to be Foundation's, which removes the item and fails.
  @Test("replaces an item in each form, and a failure leaves the item as it was")
  func replacingForms() throws {
    let files = FileManager.default
    let new = note.appendingPathExtension("new")
    typealias Replacing = (URL, URL) throws -> URL?
    let forms: [(name: String, keepsBackup: Bool, Replacing)] = [
      ("two", false, { try files.replaceItemAt($0, withItemAt: $1) }),
      ("options", false, { try files.replaceItemAt($0, withItemAt: $1, options: []) }),
      ("name", false, { try files.replaceItemAt($0, withItemAt: $1, backupItemName: "note.old") }),
      (
        "all", true,
        {
          try files.replaceItemAt(
            $0, withItemAt: $1, backupItemName: "note.old", options: .withoutDeletingBackupItem)
        }
      ),
      (
        "no name", false,
        { try files.replaceItemAt($0, withItemAt: $1, backupItemName: nil, options: []) }
      ),
      (
        "list", false,
        {
          try files.replaceItemAt(
            $0, withItemAt: $1, backupItemName: nil, options: [.usingNewMetadataOnly])
        }
      ),
    ]
    let backup = note.deletingLastPathComponent().appendingPathComponent("note.old")
    for (name, keepsBackup, replace) in forms {
      try "old".write(to: note, atomically: true, encoding: .utf8)
      for isThere in [false, true] {
        if isThere { try "new".write(to: new, atomically: true, encoding: .utf8) }
        var error: NSError?
        NSFileCoordinator().coordinate(writingItemAt: note, error: &error) { url in
          if isThere {
            do { _ = try replace(url, new) } catch { Issue.record("\(name): \(error)") }
          } else {
            #expect(throws: (any Error).self, "\(name)") { try replace(url, new) }
          }
        }
        #expect(error == nil)
        #expect(try text(note) == (isThere ? "new" : "old"), "\(name)")
        if isThere { #expect(files.fileExists(atPath: backup.path) == keepsBackup, "\(name)") }
        if files.fileExists(atPath: backup.path) {
          #expect(try text(backup) == "old")
          try files.removeItem(at: backup)
        }
      }
    }
  }

  /// It used to arrive as an error of this package, without its code.
  @Test("gets the error of a presenter in another process as that process made it")
  func presentersError() throws {
    try "x".write(to: note, atomically: true, encoding: .utf8)
    let other = try Participant(directory.path)
    #expect(try other.ask("present \(note.path) declines") == "done")
    var error: NSError?
    NSFileCoordinator().coordinate(readingItemAt: note, error: &error) { _ in
      Issue.record("it was read")
    }
    let found = try #require(error)
    #expect(found.domain == LockedNote.domain && found.code == 42)
    #expect(found.localizedDescription == "The note is locked.")
    #expect(
      found.userInfo["lines"] as? [Int] == [1, 2] && found.userInfo["by"] as? String == "Ann")
    #expect(found.userInfo[NSUnderlyingErrorKey] == nil)
    #expect("\(found.userInfo[NSDebugDescriptionErrorKey] ?? "")".contains("\(other.processID)"))
  }

  /// They did not compile.
  @Test("asks a presenter through the asynchronous forms, and waits for their end")
  func asynchronousPresenter() throws {
    try "x".write(to: note, atomically: true, encoding: .utf8)
    let asked = Ends()
    let presenter = AsyncLockedNote(note) { asked.add($0) }
    NSFileCoordinator.addFilePresenter(presenter)
    var error: NSError?
    NSFileCoordinator().coordinate(readingItemAt: note, error: &error) { _ in
      Issue.record("it was read")
    }
    #expect(error?.code == CocoaError.Code.userCancelled.rawValue)
    NSFileCoordinator().coordinate(writingItemAt: note, options: .forDeleting, error: &error) { _ in
      Issue.record("it could be deleted")
    }
    #expect(error?.code == CocoaError.Code.fileLocking.rawValue)
    NSFileCoordinator.removeFilePresenter(presenter)

    let above = AsyncLockedNote(URL(fileURLWithPath: directory.path)) { asked.add($0) }
    NSFileCoordinator.addFilePresenter(above)
    defer { NSFileCoordinator.removeFilePresenter(above) }
    error = nil
    NSFileCoordinator().coordinate(writingItemAt: note, options: .forDeleting, error: &error) {
      unlink($0.path)
    }
    #expect(error == nil && !FileManager.default.fileExists(atPath: note.path))
    #expect(asked.all == ["save", "delete", "delete note.txt"])
  }

  /// It did not compile.
  @Test("asks a presenter of the main actor there")
  func mainActorPresenter() {
    let asked = Ends()
    let presenter = CountingNote(note) {
      MainActor.assertIsolated()
      asked.add($0)
    }
    NSFileCoordinator.addFilePresenter(presenter)
    defer { NSFileCoordinator.removeFilePresenter(presenter) }
    for round in 1...2 {
      var error: NSError?
      NSFileCoordinator().coordinate(readingItemAt: note, error: &error) { _ in }
      #expect(error == nil && asked.all.last == "save \(round)")
    }
  }

  /// A presenter that has no such method is not waited for.
  @Test("has an answer at once where a presenter has neither form")
  func absentMethods() {
    let presenter = SilentNote(note) {}
    let ends = Ends()
    let answer: @Sendable ((any Error)?) -> Void = { ends.add($0.map { "\($0)" } ?? "yes") }
    presenter.savePresentedItemChanges(completionHandler: answer)
    presenter.accommodatePresentedItemDeletion(completionHandler: answer)
    presenter.accommodatePresentedSubitemDeletion(at: note, completionHandler: answer)
    #expect(ends.all == ["yes", "yes", "yes"])
    presenter.accommodatePresentedItemEviction(completionHandler: answer)
    #expect(ends.all.count == 4 && ends.all.last != "yes")
  }

  /// Never answers.
  private final class SilentNote: NSObject, NSFilePresenter, Sendable {
    let presentedItemURL: URL?
    let presentedItemOperationQueue = OperationQueue()
    private let isAsked: @Sendable () -> Void

    init(_ url: URL, isAsked: @escaping @Sendable () -> Void) {
      presentedItemURL = url
      self.isAsked = isAsked
    }

    func relinquishPresentedItem(
      toWriter writer: @escaping @Sendable ((@Sendable () -> Void)?) -> Void
    ) { isAsked() }
  }

  private final class Ends: Sendable {
    private let stored = Mutex<[String]>([])
    var all: [String] { stored.withLock { $0 } }
    func add(_ end: String) { stored.withLock { $0.append(end) } }
  }

  /// Accesses of one purpose never wait for each other.
  @Test("has one purpose for all coordinators of a presenter, registered or not")
  func onePurpose() throws {
    try "x".write(to: note, atomically: true, encoding: .utf8)
    let document = NoteDocument(fileURL: note)
    let outer = NSFileCoordinator(filePresenter: document)
    let inner = NSFileCoordinator(filePresenter: document)
    #expect(outer.purposeIdentifier == inner.purposeIdentifier)
    try document.open()
    #expect(NSFileCoordinator(filePresenter: document).purposeIdentifier == outer.purposeIdentifier)
    document.close()
    #expect(NSFileCoordinator().purposeIdentifier != outer.purposeIdentifier)
  }

  @Test("finds the group's container where the others do, and none for an unusable directory")
  func container() throws {
    let home = ["XDG_DATA_HOME=\(directory.path)"]
    let client = try Participant("group:group.com.example.notes", environment: home)
    #expect(
      try client.ask("shared-url note.txt")
        == "\(directory.path)/app-groups/group.com.example.notes/note.txt")
    #expect(try client.ask("set k 1") == "done")
    let other = try Participant(
      directory.path + "/app-groups/group.com.example.notes", environment: home)
    #expect(try other.ask("read k") == "1")
    let lost = try Participant(directory.path + "/app-groups", environment: ["XDG_DATA_HOME=/proc"])
    #expect(try lost.ask("shared-url note.txt") == "none")
  }
}
