import FileCoordination
import Foundation
import TestScopes
import TestSupport
import Testing

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
    var codes: [FileCoordinationError.Code?] = []
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
    } catch let error as FileCoordinationError {
      codes.append(error.code)
    }
    #expect(codes == [nil, .overtaken, .overtaken], "\(directory.listing)")
    #expect(try Data(contentsOf: file) == Data("second".utf8))
  }
}
