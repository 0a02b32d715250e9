import Dispatch
import NSFileCoordination
import Testing
import WormholeSystem
import WormholeTestSupport

/// An accessor that tells others of its change before it returns: by a semaphore, a continuation or a
/// completion handler, as small helpers in many apps do.
///
/// ```
/// writer                  reader
/// writes its copy
/// tells
///                         begins to read
/// returns: published
///                         has read the new item
/// ```
@Suite("A coordinated read after word from inside an accessor gets the new item", .blocking)
struct ToldTests {
  private static let rounds = TriedSteps.isThorough ? 5_000 : 100
  private let directory: TemporaryDirectory
  private var note: URL { URL(fileURLWithPath: directory.path).appendingPathComponent("note") }

  init() throws {
    directory = try TemporaryDirectory()
    try write("0", note)
  }

  @Test("in another thread", arguments: [NSFileCoordinator.WritingOptions(), .forReplacing])
  func threads(options: NSFileCoordinator.WritingOptions) throws {
    for round in 1...Self.rounds {
      let (told, done) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
      let (seen, note) = (Awaited<String>(), note)
      Thread.detachNewThread {
        told.wait()
        NSFileCoordinator().coordinate(readingItemAt: note, options: [], error: nil) {
          seen.settle(text($0))
        }
        done.signal()
      }
      change(note, options, to: "\(round)") { told.signal() }
      done.wait()
      #expect(seen.wait(until: .now) == "\(round)")
    }
  }

  @Test("in another process", arguments: [NSFileCoordinator.WritingOptions(), .forReplacing])
  func processes(options: NSFileCoordinator.WritingOptions) throws {
    let reader = try Participant(directory.path)
    for round in 1...Self.rounds {
      change(note, options, to: "\(round)") {
        do { try reader.tell("reading \(note.path) read=yes") } catch { Issue.record(error) }
      }
      #expect(try reader.answer() == "\(round)")
    }
  }

  private func change(
    _ note: URL, _ options: NSFileCoordinator.WritingOptions, to text: String, tell: () -> Void
  ) {
    var error: NSError?
    NSFileCoordinator().coordinate(writingItemAt: note, options: options, error: &error) { url in
      do { try write(text, url) } catch { Issue.record(error) }
      tell()
    }
    #expect(error == nil)
  }
}

private func write(_ text: String, _ url: URL) throws {
  try Data(text.utf8).write(to: url, options: .atomic)
}

/// The text of a file, or the error of reading it.
private func text(_ url: URL) -> String {
  do { return try String(contentsOf: url, encoding: .utf8) } catch { return "\(error)" }
}
