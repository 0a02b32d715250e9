import NSFileCoordination
import Testing
import WormholeFoundationClients
import WormholeTestSupport

/// A task that an accessor resumes, and the error, as apps wrap every form of a coordinated access. A second
/// resumption ended the process: the error was set although the accessor had run.
@Suite("The task of a coordinated access is resumed once", .blocking)
final class OnceTests {
  private let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory() }

  private func urls(in place: String) -> (note: URL, other: URL) {
    let place = URL(fileURLWithPath: place)
    return (place.appendingPathComponent("note"), place.appendingPathComponent("other"))
  }

  private func makeItems(in place: String) throws -> (note: URL, other: URL) {
    let items = urls(in: place)
    for url in [items.note, items.other] {
      try String(repeating: "old", count: 10_000).write(to: url, atomically: false, encoding: .utf8)
    }
    return items
  }

  // the other process               this process
  // is in its accessor
  //                                 stops it, and writes the item
  //                                 continues it
  // ends its accessor
  @Test("when it is stopped and overtaken in its accessor", arguments: OnceForm.allCases)
  func overtaken(form: OnceForm) throws {
    let (note, other) = try makeItems(in: directory.path)
    let client = try Participant(directory.path)
    #expect(try client.ask("events begin") == "done")
    #expect(try client.ask("resumed \(form) \(note) \(other)") == "inside")
    let stop = try Suspended(client, by: .signal)
    var error: NSError?
    var runs = 0
    NSFileCoordinator().coordinate(writingItemAt: note, options: [], error: &error) {
      runs += 1
      do { try Data("overtaker".utf8).write(to: $0) } catch { Issue.record(error) }
    }
    #expect(error == nil && runs == 1)
    try stop.resume()
    #expect(try client.ask("go on") == "ran")
    #expect(try String(contentsOf: note, encoding: .utf8) == "overtaker")
    // It is alive, and knows that nothing of its change is visible.
    if form.isWriting {
      try eventually("the event is reported") {
        try client.ask("events failure").hasPrefix("1 error")
      }
    } else {
      #expect(try client.ask("events failure") == "0")
    }
  }

  @Test("when it is refused", arguments: OnceForm.allCases)
  func refused(form: OnceForm) throws {
    let (_, other) = try makeItems(in: directory.path)
    let client = try Participant(directory.path)
    let answer = try client.ask("resumed \(form) https://example.com/note \(other)")
    #expect(answer.hasPrefix("error ") && answer.contains("names no file"), "\(answer)")
    #expect(try client.ask("events failure") == "0")
  }

  @Test(
    "when the disk is full", .enabled(if: MountNamespace.isPossible), arguments: OnceForm.allCases)
  func full(form: OnceForm) throws {
    let mounts = try MountNamespace()
    try mounts.run("mkdir disk && mount -t tmpfs -o mode=700,size=128k tmpfs disk")
    let (note, other) = try makeItems(in: mounts.inside + "/disk")
    try mounts.run("(cat /dev/zero >disk/filling) 2>/dev/null || true")
    let client = try Participant(directory.path)
    let answer = try client.ask("resumed \(form) \(note) \(other)")
    // Without room for a private copy the accessor does not run.
    if answer == "inside" {
      #expect(try client.ask("go on") == "ran")
    } else {
      #expect(answer.hasPrefix("error "), "\(answer)")
    }
    #expect(try client.ask("events failure").hasPrefix("0"))
    // To delete it an accessor gets the item itself.
    guard form != .deleting else { return }
    #expect(try String(contentsOf: note, encoding: .utf8).count == 30_000)
  }
}
