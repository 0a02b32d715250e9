import Foundation
import Testing
import Wormhole
import WormholeFiles
import WormholeTestSupport

@Suite("A holder can ask whether it still has access", .blocking)
struct HeldAccessTests {
  private func scene() throws -> (TemporaryDirectory, URL) {
    let directory = try TemporaryDirectory()
    let file = URL(filePath: directory.path + "/file")
    try Data("old".utf8).write(to: file)
    return (directory, file)
  }

  @Test("and has, as long as it was not taken over")
  func standing() throws {
    let (directory, file) = try scene()
    let code = try FileCoordinator().hold(
      itemAt: file, for: .locking, until: nil, term: .seconds(60)
    ) { _, access in try access.loss()?.code }
    #expect(code == nil, "\(directory.listing)")
  }

  /// With a term that has passed at once, the next process takes the access over.
  @Test("and gets an error after a takeover; then nothing is published")
  func overtaken() throws {
    let (directory, file) = try scene()
    var codes: [WormholeError.Code?] = []
    do {
      try FileCoordinator().hold(itemAt: file, for: .content, until: nil, term: .zero) {
        copy, access in
        try Data("first".utf8).write(to: copy)
        codes.append(try access.loss()?.code)
        try FileCoordinator().coordinate(writingItemAt: file) {
          try Data("second".utf8).write(to: $0)
        }
        codes.append(try access.loss()?.code)
      }
    } catch let error as WormholeError {
      codes.append(error.code)
    }
    #expect(codes == [nil, .overtaken, .overtaken], "\(directory.listing)")
    #expect(try Data(contentsOf: file) == Data("second".utf8))
  }

  @Test("A sign of life gives its entry another name, and nothing else", arguments: [true, false])
  func renewed(_ isOnCopy: Bool) throws {
    let (directory, file) = try scene()
    func entries() -> [String] {
      directory.listing.components(separatedBy: .whitespacesAndNewlines)
        .filter { $0.contains("/held/") && !$0.hasSuffix("/file") }
    }
    try FileCoordinator().hold(
      itemAt: file, for: isOnCopy ? .content : .locking, until: nil, term: nil
    ) { copy, access in
      let before = entries()
      try access.renew()
      #expect(Set(before).isDisjoint(with: entries()) && before.count == 1, "\(before)")
      #expect(entries().count == 1)
      #expect(try access.loss() == nil)
      #expect(throws: WormholeError.self) {
        try FileCoordinator().coordinate(writingItemAt: file, until: .now) { _ in }
      }
    }
    #expect(entries() == [])
  }
}
