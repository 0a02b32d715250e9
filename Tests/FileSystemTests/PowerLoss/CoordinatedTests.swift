import FoundationEssentials
import Testing
import Wormhole
import WormholeFiles
import WormholeSystem
import WormholeTestSupport

@Suite("Coordinated files after a power cut", .blocking, .enabled(if: !Disk.usable.isEmpty))
struct CoordinatedTests {
  private let old = Data("old".utf8)
  private let new = Data(repeating: UInt8(ascii: "n"), count: 10_000)

  private func url(_ path: String, _ name: String) -> URL { URL(filePath: path + "/" + name) }

  // As a program without regard for power cuts writes; Foundation's `Data.write` calls fsync(2).
  private func write(_ data: Data, _ url: URL) throws {
    let file = try FileDescriptor.open(url.path, [.writeOnly, .create, .truncate])
    try file.writeAll(Array(data))
  }

  private func prepare(_ disk: Disk) throws -> String {
    let path = try disk.makeContainer()
    let coordinator = FileCoordinator(durability: .durable)
    for name in ["replaced", "removed"] {
      try coordinator.coordinate(writingItemAt: url(path, name)) { try write(old, $0) }
    }
    try coordinator.coordinate(writingItemAt: url(path, "directory")) { directory in
      try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: false)
      try write(old, directory.appending(path: "file"))
    }
    return path
  }

  private func change(_ path: String, _ coordinator: FileCoordinator) throws {
    for name in ["replaced", "made"] {
      // A new file, because ext4 flushes a file that is truncated and rewritten when it is closed.
      try coordinator.coordinate(writingItemAt: url(path, name), options: .forReplacing) {
        try write(new, $0)
      }
    }
    try coordinator.coordinate(writingItemAt: url(path, "removed"), options: .forDeleting) {
      try FileManager.default.removeItem(at: $0)
    }
    try coordinator.coordinate(writingItemAt: url(path, "directory")) { directory in
      try write(new, directory.appending(path: "file"))
      try write(new, directory.appending(path: "another"))
    }
  }

  @Test("durable changes are there: of a file, a new file, a removed one, and a directory")
  func durable() throws {
    for kind in Disk.usable {
      let disk = try Disk(kind)
      let path = try prepare(disk)
      try change(path, FileCoordinator(durability: .durable))
      try disk.cutPower()
      try disk.restart()
      for name in ["replaced", "made", "directory/file", "directory/another"] {
        #expect(try Data(contentsOf: url(path, name)) == new, "\(kind): \(name)")
      }
      #expect(!FileManager.default.fileExists(atPath: url(path, "removed").path), "\(kind)")
      // Leftovers beside the items block nothing.
      try FileCoordinator().coordinate(writingItemAt: url(path, "replaced")) {
        try write(old, $0)
      }
      #expect(try Data(contentsOf: url(path, "replaced")) == old)
    }
  }

  /// An exchange would leave an empty file: only a rename over the old file makes ext4 write the
  /// content first.
  @Test("others of a file are old or new on ext4, even if the rename has reached the disk")
  func standard() throws {
    guard Disk.usable.contains(.ext4) else { return }
    let disk = try Disk(.ext4)
    for isJournalWritten in [false, true] {
      let path = try prepare(disk)
      try change(path, FileCoordinator())
      if isJournalWritten {
        try FileCoordinator(durability: .durable).coordinate(writingItemAt: url(path, "anchor")) {
          try write(old, $0)
        }
      }
      try disk.cutPower()
      try disk.restart()
      let found = try Data(contentsOf: url(path, "replaced"))
      #expect(found == (isJournalWritten ? new : old) || found == new, "\(found.count) bytes")
      #expect(try isJournalWritten == false || Data(contentsOf: url(path, "anchor")) == old)
    }
  }
}
