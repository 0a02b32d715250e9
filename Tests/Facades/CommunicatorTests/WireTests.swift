import Foundation
import Testing
import WatchConnectivity
import WormholeTestSupport

@testable import Communicator

@Suite("The form of messages on their way", .blocking)
struct WireTests {
  private var content: Content {
    [
      "text": "a", "number": 5, "half": 0.5, "flag": true, "list": [1, "b"], "none": [:] as Content,
    ]
  }

  @Test("is a dictionary of identifier and content, as with the original")
  func shape() throws {
    let wire = try ImmediateMessage(identifier: "a", content: content).wire.checked()
    #expect(Set(wire.keys) == ["identifier", "content"])
    #expect(wire["identifier"] as? String == "a")
    #expect((wire["content"] as? Content)?.keys == content.keys)
    let complication = try ComplicationInfo(content: content).wire.checked()
    #expect(Array(complication.keys) == ["__complication_info__"])
  }

  @Test("and is read back unchanged")
  func roundTrip() throws {
    let immediate = ImmediateMessage(identifier: "a", content: content)
    let guaranteed = GuaranteedMessage(identifier: "", content: content)
    let blob = Blob(identifier: "b", content: Data([1]), metadata: content)
    let info = ComplicationInfo(content: content)
    let came = try #require(ImmediateMessage(wire: immediate.wire.checked()))
    #expect("\(came)".count == "\(immediate)".count)
    #expect(came.content["number"] as? Int == 5)
    #expect(came.content["half"] as? Double == 0.5)
    #expect(came.content["flag"] as? Bool == true)
    #expect(try GuaranteedMessage(wire: guaranteed.wire.checked())?.identifier == "")
    let received = try Blob(content: Data([1]), wireMetadata: blob.wireMetadata.checked())
    #expect(received?.metadata?.keys == content.keys)
    #expect(try ComplicationInfo(wire: info.wire.checked())?.content.keys == content.keys)
  }

  @Test("and its numbers cast to every type, as the original's do")
  func numbers() throws {
    let sent = GuaranteedMessage(identifier: "a", content: ReceivedNumbers.sent)
    let came = try #require(GuaranteedMessage(wire: sent.wire.checked()))
    #expect(ReceivedNumbers.findings(in: came.content) == "")
  }

  @Test("of a blob without metadata is one without metadata")
  func noMetadata() throws {
    let metadata = try Blob(identifier: "b", content: Data()).wireMetadata.checked()
    let blob = try #require(Blob(content: Data(), wireMetadata: metadata))
    #expect(blob.identifier == "b" && blob.metadata == nil)
  }

  @Test("is not a message if anything is missing or of another type")
  func malformed() {
    let all: [Content] = [
      [:], ["identifier": "a"], ["content": [:] as Content],
      ["identifier": 5, "content": [:] as Content], ["identifier": "a", "content": "b"],
      ["identifier": "a", "content": [1]], ["__complication_info__": 1],
    ]
    for wire in all {
      #expect(ImmediateMessage(wire: wire) == nil, "\(wire)")
      #expect(InteractiveImmediateMessage(wire: wire, reply: { _ in }) == nil, "\(wire)")
      #expect(GuaranteedMessage(wire: wire) == nil, "\(wire)")
      #expect(ComplicationInfo(wire: wire) == nil, "\(wire)")
      #expect(Blob(content: Data(), wireMetadata: wire) == nil, "\(wire)")
    }
    #expect(Blob(content: Data(), wireMetadata: nil) == nil)
  }

  @Test("cannot hold content beyond property lists, which is an error and not a crash")
  func unsupported() {
    final class Ticket {}
    let contents: [Content] = [
      ["a": Ticket()], ["a": [Ticket()]], ["a": Int?.none as Any], ["a": ["b": { () in }]],
    ]
    for content in contents {
      #expect(ImmediateMessage(identifier: "a", content: content).content.isEmpty)
      let error = #expect(throws: WCError.self) {
        try ImmediateMessage(identifier: "a", content: content).wire.checked()
      }
      #expect(error?.code == .payloadUnsupportedTypes)
      #expect(error?.failureReason?.contains("a") == true)
      #expect(throws: WCError.self) {
        try Blob(identifier: "a", content: Data(), metadata: content).wireMetadata.checked()
      }
    }
  }
}
