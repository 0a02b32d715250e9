import Foundation
import Testing
import WormholePropertyLists
import WormholeTestSupport

@Suite(
  "Python's plistlib and we read each other's files alike", .blocking,
  .enabled(if: Python.mayRun, "python3 is not installed, and nothing else checks us against it"))
struct PythonDifferentialTests {
  /// Python has no year 0, and its dates are whole microseconds.
  private static let dates = -63_113_904_000 + 86_400...252_423_993_599 - 86_400

  @Test("Python reads our files of random values as the same values")
  func pythonReadsOurs() throws {
    let seed = TestSeed.next("PLIST_SEED").value
    var binary = RandomValues(seed: seed, RandomProfile(dates: Self.dates))
    var profile = RandomProfile.xml
    profile.dates = Self.dates
    var xml = RandomValues(seed: seed &+ 1, profile)
    var expected: [PropertyListValue] = EdgeValues.all
    var requests = try expected.map { Python.Request.read(try $0.binaryBytes()) }
    for _ in 0..<150 {
      let binaryValue = binary.value()
      let xmlValue = xml.value()
      expected += [binaryValue, xmlValue]
      requests.append(.read(try binaryValue.binaryBytes()))
      requests.append(.read([UInt8](try xmlValue.xmlData())))
    }
    for (value, answer) in zip(expected, try Python.answers(to: requests)) {
      #expect(answer == textualDump(value))
    }
  }

  @Test("We read Python's files of random values as the same values, and the guard accepts them")
  func weReadPythons() throws {
    let seed = TestSeed.next("PLIST_SEED").value
    // Python's writer shares equal floats and treats -0.0 and 0.0 as equal; its XML writer turns
    // carriage returns into line feeds.
    var binary = RandomValues(
      seed: seed, RandomProfile(dates: Self.dates, negativeZero: false))
    var profile = RandomProfile.xml
    profile.dates = Self.dates
    profile.carriageReturns = false
    var xml = RandomValues(seed: seed &+ 1, profile)
    var expected = EdgeValues.all.filter { $0 != .real(-0.0) }
    var requests = expected.map { Python.Request.writeBinary($0) }
    for _ in 0..<150 {
      let binaryValue = binary.value()
      let xmlValue = xml.value()
      expected += [binaryValue, xmlValue]
      requests += [.writeBinary(binaryValue), .writeXML(xmlValue)]
    }
    for (value, answer) in zip(expected, try Python.answers(to: requests)) {
      let bytes = bytes(ofHex: answer)
      try PropertyListGuard.check(bytes)
      #expect(textualDump(try PropertyListValue(bytes: bytes)) == textualDump(value))
    }
  }

  @Test("Python's calendar and ours agree, above all around leap days and centuries")
  func calendar() throws {
    var generator = SeededGenerator(seed: TestSeed.next("PLIST_SEED").value)
    // From 0000-03-01, where the cycle of 400 years begins, to 2001-01-01.
    let cycleStart = -730_791
    var days = (0..<2_000).map { _ in Int.random(in: -730_485..<2_921_574, using: &generator) }
    for cycle in 0..<24 {
      for century in 0...4 {
        let boundary = cycleStart + cycle * 146_097 + century * 36_524
        days += (boundary - 2)...(boundary + 2)
      }
    }
    let dates = days.filter { $0 > -730_485 }.map {
      PropertyListValue.date(Date(timeIntervalSinceReferenceDate: Double($0 * 86_400 - 1)))
    }
    let value = PropertyListValue.array(dates)
    let answers = try Python.answers(to: [.read([UInt8](try value.xmlData())), .writeXML(value)])
    #expect(answers[0] == textualDump(value))
    #expect(try PropertyListValue(bytes: bytes(ofHex: answers[1])) == value)
  }

  @Test("A value that Python refuses as XML is refused by our writer")
  func controlCharacters() throws {
    let values = (UInt32(0)..<0x20).compactMap(Unicode.Scalar.init).map {
      PropertyListValue.string("a\(Character($0))b")
    }
    let answers = try Python.answers(to: values.map { .writeXML($0) })
    for (value, answer) in zip(values, answers) where answer.hasPrefix("E") {
      #expect(throws: PropertyListError.self) { try value.xmlData() }
    }
    #expect(answers.contains { $0.hasPrefix("E") })
  }
}
