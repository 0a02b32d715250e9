import FoundationClients
import NSFileCoordination
import Synchronization
import TestScopes
import TestSupport
import Testing

@Suite("Code written for NSFileCoordinator", .blocking)
final class NSFileCoordinationTests {
  private let directory: TemporaryDirectory
  private var note: URL { URL(fileURLWithPath: directory.path + "/note.txt") }

  init() throws {
    directory = try TemporaryDirectory()
  }

  private func text(_ url: URL) throws -> String { try String(contentsOf: url, encoding: .utf8) }

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
      try? "three".write(to: $0, atomically: true, encoding: .utf8)
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
    var read = ""
    var error: NSError?
    NSFileCoordinator().coordinate(readingItemAt: note, error: &error) {
      read = (try? String(contentsOf: $0, encoding: .utf8)) ?? ""
    }
    #expect(error == nil)
    #expect(read == "unsaved")
    document.close()
    document.text = "unsaved again"
    document.hasUnsavedChanges = true
    NSFileCoordinator().coordinate(readingItemAt: note, error: &error) {
      read = (try? String(contentsOf: $0, encoding: .utf8)) ?? ""
    }
    #expect(read == "unsaved")
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
    NSFileCoordinator().coordinate(writingItemAt: missing, error: &error) { _ in runs += 1 }
    #expect(error?.domain == NSCocoaErrorDomain)
    #expect(error?.code == CocoaError.Code.fileNoSuchFile.rawValue)
    #expect(error?.localizedDescription.contains("no such directory") == true, "\(error as Any)")

    // The other access lasts until this one was given up.
    try "x".write(to: note, atomically: true, encoding: .utf8)
    let coordinator = NSFileCoordinator()
    error = nil
    NSFileCoordinator().coordinate(writingItemAt: note, error: nil) { _ in
      let waiter = Thread { [note] in
        var failure: NSError?
        coordinator.coordinate(writingItemAt: note, error: &failure) { _ in }
        Self.failures.withLock { $0 = [failure?.code ?? 0] }
      }
      waiter.start()
      while Self.failures.withLock(\.isEmpty) {
        coordinator.cancel()
        usleep(1_000)
      }
    }
    #expect(Self.failures.withLock { $0 } == [CocoaError.Code.userCancelled.rawValue])
    #expect(runs == 0)
  }

  private static let failures = Mutex<[Int]>([])

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
  }
}
