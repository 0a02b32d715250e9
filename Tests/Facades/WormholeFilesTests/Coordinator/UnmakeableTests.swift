import FoundationEssentials
import Testing
import Wormhole
import WormholeSystem
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
    let error = #expect(throws: WormholeError.self) {
      try coordinator.coordinate(writingItemAt: url, until: .now + .seconds(3_600)) { _ in }
    }
    #expect(error?.code == .permissionDenied)
    #expect(error?.path == "/proc/version")
  }

  @Test(
    "a file that this user may not read can be removed and replaced", arguments: [false, true])
  func unreadable(isDeleted: Bool) throws {
    let directory = try TemporaryDirectory(under: TemporaryDirectory.enteredByAll)
    let path = directory.path + "/file"
    try Data("secret".utf8).write(to: URL(filePath: path))
    try setPermissions(FileName(path), at: Directory.current, 0)
    if Program.effectiveUser == 0 {
      try setOwner(FileName(directory.path), at: Directory.current, 65_534, group: 65_534)
    }
    try asNobody {
      try FileCoordinator().coordinate(
        writingItemAt: URL(filePath: path),
        options: isDeleted ? .forDeleting : [.forReplacing, .showingItem]
      ) { url in
        try removeFile(url.path)
        if !isDeleted { try FileDescriptor.open(url.path, [.writeOnly, .create]).writeAll([1]) }
      }
    }
    #expect(try ifPresent(fileStatus(path))?.size == (isDeleted ? nil : 1))
    #expect(directory.listing.contains(".coordination") == false, "\(directory.listing)")
  }
}
