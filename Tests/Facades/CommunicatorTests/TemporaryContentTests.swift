import Foundation
import Testing
import WormholeTestSupport

@testable import Communicator
@testable import WatchConnectivity

@Suite("The temporary files of content", .blocking)
struct TemporaryContentTests {
  // In the original all blobs shared one file, and the later one was sent twice.
  @Test("is a separate file with the content for each blob, and only its user may enter")
  func own() throws {
    let contents = (0..<4).map { Data(repeating: UInt8($0), count: $0 * 1_000) }
    let files = try contents.map(TemporaryContent.blob.write)
    #expect(Set(files.map(\.path)).count == contents.count)
    for (file, content) in zip(files, contents) {
      #expect(try Data(contentsOf: file) == content)
      let directory = file.deletingLastPathComponent()
      let attributes = try FileManager.default.attributesOfItem(atPath: directory.path)
      #expect(attributes[.posixPermissions] as? Int == 0o700)
      TemporaryContent.remove(file)
      #expect(!FileManager.default.fileExists(atPath: directory.path))
      // A second time does no harm, because an earlier process may have been killed in between.
      TemporaryContent.remove(file)
    }
  }

  @Test("is the only file that is removed")
  func others() throws {
    let file = try TemporaryContent.blob.write(Data())
    defer { TemporaryContent.remove(file) }
    let inner = file.deletingLastPathComponent().appendingPathComponent("wormhole-content-x")
    try FileManager.default.createDirectory(at: inner, withIntermediateDirectories: false)
    let other = inner.appendingPathComponent("blob")
    try Data().write(to: other)
    TemporaryContent.remove(other)
    #expect(FileManager.default.fileExists(atPath: other.path))
  }
}
