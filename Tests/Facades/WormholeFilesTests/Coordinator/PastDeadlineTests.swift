import Foundation
import Testing
import WormholeFiles
import WormholeTestSupport

@Suite("A deadline that has passed already", .blocking)
struct PastDeadlineTests {
  /// The copy used to be given up in its first step, although no process was in the way.
  @Test("means: only if the item is free; then a file or directory is copied and published")
  func publication() throws {
    let directory = try TemporaryDirectory()
    let file = URL(filePath: directory.path + "/file")
    let folder = URL(filePath: directory.path + "/folder")
    try Data("old".utf8).write(to: file)
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
    let past = ContinuousClock.now - .seconds(1)
    try FileCoordinator().coordinate(writingItemAt: file, until: past) { copy in
      #expect(try Data(contentsOf: copy) == Data("old".utf8))
      try Data("new".utf8).write(to: copy)
    }
    try FileCoordinator().coordinate(writingItemAt: folder, until: past) { copy in
      try Data("new".utf8).write(to: copy.appending(path: "entry"))
    }
    #expect(try Data(contentsOf: file) == Data("new".utf8))
    #expect(try Data(contentsOf: folder.appending(path: "entry")) == Data("new".utf8))
  }
}
