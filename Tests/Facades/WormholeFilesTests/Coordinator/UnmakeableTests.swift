import FoundationEssentials
import Testing
import Wormhole
import WormholeTestSupport

@testable import WormholeFiles

@Suite("Where no hidden directory can be created", .blocking)
struct UnmakeableTests {
  /// The access used to try again until the deadline, and then to blame another process: in /proc a
  /// directory that cannot be created does not exist (mkdir(2), ENOENT).
  @Test("an item can be read, and changing it is refused at once")
  func proc() throws {
    let url = URL(filePath: "/proc/version")
    let coordinator = FileCoordinator()
    let text = try coordinator.coordinate(readingItemAt: url) {
      try String(contentsOf: $0, encoding: .utf8)
    }
    #expect(text.hasPrefix("Linux"))
    let error = #expect(throws: FileCoordinationError.self) {
      try coordinator.coordinate(writingItemAt: url, until: .now + .seconds(3_600)) { _ in }
    }
    #expect(error?.code == .permissionDenied)
    #expect(error?.path == "/proc/version")
  }
}
