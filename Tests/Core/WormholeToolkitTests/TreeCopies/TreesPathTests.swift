import Testing
import WormholeTestSupport

@testable import WormholeSystem

@Suite("The path of an entry in a tree", .blocking)
struct TreesPathTests {
  @Test("keeps its bytes")
  func bytes() {
    let directory = TreePath(FileName(bytes: [0xff]))
    let entry = directory.appending(FileName(bytes: [0x61]))
    #expect(entry.bytes == [0xff, 0x2f, 0x61])
    #expect(TreePath().appending(FileName(bytes: [0x61])).bytes == [0x61])
  }
}
