import Foundation
import Testing
import WormholePropertyLists
import WormholeTestSupport

@Suite("Limits are exact: a file at the limit passes, one more does not", .blocking)
struct LimitsTests {
  /// Ten nodes: four containers, two keys, four scalars. Content: 1 + 1 + 3 + 4 bytes.
  private let value: PropertyListValue = [
    "a": [1, "xyz", []], "b": [.data(Data(count: 4)), true],
  ]
  private let nodes = 10
  private let content = 9

  private var files: [[UInt8]] {
    get throws { [try value.binaryBytes(), [UInt8](try value.xmlData())] }
  }

  @Test("Bytes of the file")
  func fileSize() throws {
    for file in try files {
      #expect(refusal(file, limits: PropertyListLimits(maximumBytes: file.count)) == nil)
      let less = PropertyListLimits(maximumBytes: file.count - 1)
      #expect(refusal(file, limits: less) == .tooManyBytes)
    }
  }

  @Test("Depth")
  func depth() throws {
    for file in try files {
      #expect(refusal(file, limits: PropertyListLimits(maximumDepth: 3)) == nil)
      #expect(refusal(file, limits: PropertyListLimits(maximumDepth: 2)) == .tooDeep)
    }
    #expect(
      refusal(try PropertyListValue.integer(1).binaryBytes(), limits: .init(maximumDepth: 0)) == nil
    )
    let deep = String(repeating: "<array>", count: 600) + String(repeating: "</array>", count: 600)
    let limits = PropertyListLimits(maximumDepth: 10_000)
    #expect(refusal(Array("<plist>\(deep)</plist>".utf8), limits: limits) == .tooDeep)
  }

  @Test("Nodes")
  func values() throws {
    for file in try files {
      #expect(refusal(file, limits: PropertyListLimits(maximumNodes: nodes)) == nil)
      #expect(refusal(file, limits: PropertyListLimits(maximumNodes: nodes - 1)) == .tooManyNodes)
    }
  }

  @Test("Expanded bytes")
  func expansion() throws {
    let cost = content + nodes * PropertyListLimits.bytesPerNode
    for file in try files {
      // Base64 is charged by the length of its text: four bytes are eight characters.
      let slack = file.starts(with: "bplist".utf8) ? 0 : 2
      #expect(refusal(file, limits: PropertyListLimits(maximumExpandedBytes: cost + slack)) == nil)
      let less = PropertyListLimits(maximumExpandedBytes: cost + slack - 1)
      #expect(refusal(file, limits: less) == .tooManyExpandedBytes)
    }
  }

  @Test("A unit of UTF-16 counts as three bytes, which it may take in UTF-8")
  func wideStrings() throws {
    let file = try PropertyListValue.string("日本").binaryBytes()
    let cost = 2 * 3 + PropertyListLimits.bytesPerNode
    #expect(refusal(file, limits: PropertyListLimits(maximumExpandedBytes: cost)) == nil)
    let less = PropertyListLimits(maximumExpandedBytes: cost - 1)
    #expect(refusal(file, limits: less) == .tooManyExpandedBytes)
  }

  @Test("A shared object counts once for every reference to it")
  func sharing() {
    var file = HandMadeBinary()
    file.string("abcd")
    file.container(0xA0, [0, 0])
    file.top = file.container(0xA0, [1, 1, 0])
    let nodes = 8
    let content = 20
    let limits = PropertyListLimits(
      maximumDepth: 2, maximumNodes: nodes,
      maximumExpandedBytes: content + nodes * PropertyListLimits.bytesPerNode)
    #expect(refusal(file.bytes(), limits: limits) == nil)
    var less = limits
    less.maximumNodes -= 1
    #expect(refusal(file.bytes(), limits: less) == .tooManyNodes)
    less = limits
    less.maximumExpandedBytes -= 1
    #expect(refusal(file.bytes(), limits: less) == .tooManyExpandedBytes)
    less = limits
    less.maximumDepth = 1
    #expect(refusal(file.bytes(), limits: less) == .tooDeep)
  }

  @Test("The writer refuses the values, and only those, that a reader with its limits refuses")
  func writing() throws {
    var random = RandomValues(seed: TestSeed.next("PLIST_SEED").value, .binary)
    let shared = PropertyListValue.string(String(repeating: "é", count: 20))
    for round in 0..<200 {
      let some = random.value()
      // From 32 objects on equal strings are written once, and each reference counts.
      let value: PropertyListValue =
        round.isMultiple(of: 2)
        ? some : [some, .array(Array(repeating: shared, count: 40)), ["a": shared]]
      let bytes = try value.binaryBytes()
      for limits in [
        PropertyListLimits(maximumBytes: Int.random(in: 1...2 * bytes.count)),
        PropertyListLimits(maximumDepth: Int.random(in: 0...4)),
        PropertyListLimits(maximumNodes: Int.random(in: 1...120)),
        PropertyListLimits(maximumExpandedBytes: Int.random(in: 32...8_000)),
      ] {
        let written: [UInt8]?
        do throws(PropertyListError) {
          written = try value.binaryBytes(limits: limits)
        } catch {
          written = nil
        }
        #expect((written == nil) == (refusal(bytes, limits: limits) != nil), "\(limits) \(value)")
        #expect(written == nil || written == bytes)
      }
    }
  }
}
