import Testing
import WormholeSystem
import WormholeTestSupport
import WormholeToolkit

/// A linker takes only those objects from a static archive that something names.
@Suite("A program that is linked with a static archive", .blocking)
struct StaticArchiveTests {
  @Test("gets every kind of message from a wormhole")
  func messages() throws {
    let directory = try TemporaryDirectory()
    let package = ReaderPackage(directory: directory.path)
    let source = """
      import Foundation
      import MMWormhole
      import Wormhole

      let container = try SharedContainer(
        url: URL(fileURLWithPath: CommandLine.arguments[1], isDirectory: true))
      let wormhole = MMWormhole(container: container, optionalDirectory: "w")
      wormhole.errorHandler = { print($0) }
      let messages: [any NSCoding] = [
        "text" as NSString, ["key": "value"] as NSDictionary, ["element"] as NSArray,
        NSNumber(value: 7), NSNumber(value: true), Data([1]) as NSData,
      ]
      for message in messages {
        wormhole.passMessageObject(message, identifier: "m")
        print(wormhole.message(withIdentifier: "m") ?? "nothing")
      }

      """
    let outcome = try package.build(source, as: "archived", isArchived: true)
    try #require(outcome.isBuilt, "\(outcome.said)")
    let container = directory.path + "/container"
    try makeDirectory(container, mode: 0o700)
    let program = try LineProcess(directory.path + "/archived", [container])
    let expected = ["text", #"["key": "value"]"#, #"["element"]"#, "7", "1", "1 bytes"]
    for line in expected { #expect(try program.line(until: soon) == line) }
  }
}
