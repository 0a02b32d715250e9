import Foundation
import Testing
import WormholePropertyLists
import WormholeTestSupport

@Suite("An annotation of a binary property list", .blocking)
struct AnnotationTests {
  private static let content = Array("who, and when".utf8)

  private func annotated(_ document: [UInt8], _ content: [UInt8] = content) throws -> [UInt8] {
    let end = try #require(BinaryPropertyListAnnotation.end(with: content, of: document))
    return document[..<end.unchanged] + end.bytes
  }

  /// Documents on both sides of every size at which the entries of the offset table grow.
  private func documents() throws -> [[UInt8]] {
    var random = RandomValues(
      seed: TestSeed.next("PLIST_SEED").value,
      RandomProfile(
        dates: -63_113_904_000 + 86_400...252_423_993_599 - 86_400, nanPayloads: false))
    var values = EdgeValues.all + (0..<100).map { _ in random.value() }
    for size in [0, 100, 200, 219, 220, 221, 230, 240, 260, 65_480, 65_500, 65_520, 65_540] {
      values.append(.string(String(repeating: "x", count: size)))
    }
    // With 255 and 65,535 objects another object would need wider references.
    for count in [253, 254, 255, 256] {
      values.append(.array((0..<count).map { .integer(Int64($0)) }))
    }
    return try values.map { try $0.binaryBytes() }
  }

  @Test("leaves the content to every reader: ours, both of Foundation, and Python's")
  func readers() throws {
    let documents = try documents()
    let annotated = try documents.map { try self.annotated($0) }
    for (document, bytes) in zip(documents, annotated) {
      let value = try PropertyListValue(bytes: document)
      #expect(textualDump(try PropertyListValue(bytes: bytes)) == textualDump(value))
      try DecoderAgreement.check(bytes, is: value)
      let object = try PropertyListSerialization.propertyList(from: Data(bytes), format: nil)
      let answer = textualDump(try PropertyListValue(propertyList: object))
      #expect(answer == textualDump(value))
    }
    guard Python.mayRun else { return }
    let answers = try Python.answers(to: annotated.map { .read($0) })
    for (document, answer) in zip(documents, answers) {
      #expect(answer == textualDump(try PropertyListValue(bytes: document)))
    }
  }

  @Test("is removed without a trace, and found in no document without one")
  func removal() throws {
    for document in try documents() {
      var bytes = document
      #expect(BinaryPropertyListAnnotation.remove(from: &bytes) == nil && bytes == document)
      for content in [[], Self.content, Array(repeating: 7, count: 238)] {
        bytes = try annotated(document, content)
        #expect(bytes.count <= document.count + BinaryPropertyListAnnotation.maximumGrowth)
        #expect(BinaryPropertyListAnnotation.remove(from: &bytes) == content)
        #expect(bytes == document)
      }
    }
    for other in ["", "bplist00", "garbage", "<plist version=\"1.0\"><true/></plist>"] {
      var bytes = Array(other.utf8)
      #expect(BinaryPropertyListAnnotation.end(with: [], of: bytes) == nil)
      #expect(BinaryPropertyListAnnotation.remove(from: &bytes) == nil)
      #expect(bytes == Array(other.utf8))
    }
  }

  @Test("is not found in the content, even if that holds a document with one")
  func withinContent() throws {
    let inner = try annotated(try PropertyListValue.string("inner").binaryBytes())
    let value = PropertyListValue.data(Data(inner))
    let document = try value.binaryBytes()
    var bytes = document
    #expect(BinaryPropertyListAnnotation.remove(from: &bytes) == nil)
    // Bytes that end the objects exactly as an annotation does, except for their place.
    let end = inner.count - 32 - 1
    bytes = try PropertyListValue.data(Data(inner[..<end])).binaryBytes()
    #expect(BinaryPropertyListAnnotation.remove(from: &bytes) == nil)
    #expect(try PropertyListValue(bytes: bytes) == .data(Data(inner[..<end])))
  }

  @Test("with any damage is refused or read, and harms no reader")
  func damage() throws {
    let document = try PropertyListValue(["k": [1, 2.5, "é", true]]).binaryBytes()
    let intact = try annotated(document)
    for index in intact.indices {
      for byte in [0, 1, 7, 8, 0x0F, 0x10, 0x4F, 0x7F, 0x80, 0xFF, intact[index] ^ 1] {
        var bytes = intact
        bytes[index] = byte
        let damaged = bytes
        if BinaryPropertyListAnnotation.remove(from: &bytes) == nil { #expect(bytes == damaged) }
        _ = Result { try PropertyListValue(bytes: bytes) }
      }
    }
    for count in 0..<intact.count {
      var bytes = Array(intact[..<count])
      _ = BinaryPropertyListAnnotation.remove(from: &bytes)
      bytes = Array(intact.suffix(count))
      _ = BinaryPropertyListAnnotation.remove(from: &bytes)
    }
  }
}
