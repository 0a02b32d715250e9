import FoundationEssentials
import Testing
import WormholeTestSupport

/// The document of the original, in a directory beside the checkout; it is not part of this package.
private let document = Checkout.path("../shared/seeds/003_ade887d910d84757.txt")

private let isThere: Bool = {
  let isThere = FileManager.default.fileExists(atPath: document)
  if !isThere { print("skipped: there is no document of Communicator at \(document)") }
  return isThere
}()

@Suite("The document of Communicator", .blocking, .enabled(if: isThere))
struct DocumentTests {
  @Test("has only code that compiles unchanged", arguments: ["5", "6"])
  func blocks(languageMode: String) throws {
    let blocks = try Self.blocks(in: ItemText.read(document) ?? "")
    #expect(blocks.count == 37)
    // Some of them use what the document leaves to its reader.
    let functions = blocks.enumerated().map { number, block in
      """
      func block\(number)(
        json: Content, data: Data, message: ImmediateMessage, blob: Blob,
        complicationInfo: ComplicationInfo
      ) {
      \(block)
      }
      """
    }
    let sources = """
      import Communicator
      import Foundation
      func getJourneyHistoryData() -> Data { Data() }
      \(functions.joined(separator: "\n"))
      """
    let directory = try TemporaryDirectory()
    let outcome = try ReaderPackage(directory: directory.path)
      .check(["Document": sources], languageMode: languageMode)
    #expect(outcome.isBuilt, "\(outcome.said)")
  }

  private static func blocks(in text: String) -> [String] {
    text.components(separatedBy: "```swift\n").dropFirst().map {
      $0.components(separatedBy: "```")[0]
    }
  }
}
