import FoundationEssentials
import Testing
import Wormhole
import WormholeFiles
import WormholeSystem
import WormholeTestSupport

@testable import WormholeCommand

@Suite("A command that works under a lock", .blocking)
struct LockedRunTests {
  // `wormhole` used to be stopped here, lose the lock, and start its command when it was continued: beside
  // the one that had the lock then.
  //
  // In its own process, which adopts the processes that it leaves: that of all tests would adopt theirs.
  @Test("is not started when the lock was taken away before that", .ownProcess)
  func takenAway() throws {
    let directory = try TemporaryDirectory()
    let environment = CommandEnvironment(
      variable: { _ in nil }, writeStandardOutput: { _ in },
      writeStandardError: { _ in })
    let error = try #require(throws: LostBeforeStart.self) {
      try FileCoordinator().hold(
        itemAt: URL(filePath: directory.path + "/c"), for: .locking, until: .now + .seconds(20),
        term: .seconds(60)
      ) { _, access in
        try takeAway(directory.path + "/.coordination-c")
        let command = ExternalCommand(words: ["touch", directory.path + "/started"])
        _ = try LockedRun(
          file: "c", words: command.words, isShared: false, term: nil,
          wait: LockWait(timeout: .seconds(20)), environment: environment
        ).end(of: command, directory.path + "/c", access)
      }
    }
    #expect((error.error as? WormholeError)?.code == .overtaken, "\(error)")
    #expect(!directory.listing.contains("started"), "\(directory.listing)")
  }

  /// As another process does it that finds this one stopped.
  private func takeAway(_ site: String) throws {
    let held = try FileDescriptor.open(site + "/held", [.readOnly, .directory])
    for entry in try held.entries() { try removeDirectory(entry.name.text, at: held.rawValue) }
  }
}
