import Foundation
import Testing
import WormholePropertyLists
import WormholeTestSupport

/// Thousands of damaged files: none traps, hangs or gets two verdicts.
///
/// PLIST_MUTATIONS sets their number, PLIST_SEED repeats a run.
@Suite("Damaged property lists", .blocking, .timeLimit(.minutes(60)))
struct MutationTests {
  /// Small enough that no input takes more than a millisecond or two in a debug build.
  private static let limits = PropertyListLimits(
    maximumBytes: 1 << 16, maximumDepth: 30, maximumNodes: 300, maximumExpandedBytes: 1 << 14)

  private static var count: Int {
    ProcessInfo.processInfo.environment["PLIST_MUTATIONS"].flatMap { Int($0) } ?? 10_000
  }

  @Test("Guard, reader and PropertyListDecoder agree on every one of them")
  func agreement() throws {
    let seed = TestSeed.next("PLIST_SEED").value
    var mutator = Mutator(seed: seed)
    let corpus = try Self.corpus(seed: seed &+ 1)
    let watch = Watchdog()
    var tally = Tally()
    for number in 0..<Self.count {
      let file = mutator.input(from: corpus)
      watch.begin(file)
      try judge(file, number: number, &tally)
      watch.end()
    }
    watch.stop()
    print("agreement: \(tally), slowest \(watch.slowestMicroseconds) µs of CPU, \(peakMemory())")
    #expect(watch.overruns.map { hex($0) } == [])
    // A test in which nothing or everything passes would prove nothing.
    #expect(tally.accepted > Self.count / 100 && tally.refused > Self.count / 10)
  }

  private static func corpus(seed: UInt64) throws -> [[UInt8]] {
    var binary = RandomValues(seed: seed, .binary)
    var xml = RandomValues(seed: seed &+ 1, .xml)
    var corpus: [[UInt8]] = []
    for _ in 0..<60 {
      let value = xml.value(size: 12)
      corpus.append(try binary.value(size: 12).binaryBytes())
      corpus.append([UInt8](try value.xmlData()))
      corpus.append([UInt8](try value.binaryData()))
      for format in [PropertyListSerialization.PropertyListFormat.binary, .xml] {
        corpus.append(
          [UInt8](
            try PropertyListSerialization.data(
              fromPropertyList: value.propertyListObject, format: format, options: 0)))
      }
    }
    return corpus
  }

  private func judge(_ file: [UInt8], number: Int, _ tally: inout Tally) throws {
    let value: PropertyListValue
    switch verdict(file, limits: Self.limits) {
    case .failure(let error):
      tally.refused += 1
      tally.codes[error.code, default: 0] += 1
      return
    case .success(let read): value = read
    }
    tally.accepted += 1
    do {
      try DecoderAgreement.check(file, is: value)
      if number.isMultiple(of: 16) {
        _ = try PropertyListDecoder().decode(AnyPropertyList.self, from: Data(file))
      }
    } catch {
      Issue.record("the decoder disagrees about \(hex(file)): \(error)")
    }
    let rewritten = try PropertyListValue(bytes: value.binaryBytes())
    #expect(rewritten == value, "\(hex(file))")
  }
}

private struct Tally: CustomStringConvertible {
  var accepted = 0
  var refused = 0
  var codes: [PropertyListError.Code: Int] = [:]

  var description: String {
    let reasons = codes.sorted { $0.value > $1.value }.map { "\($0.key.rawValue) \($0.value)" }
    return "\(accepted) accepted, \(refused) refused (\(reasons.joined(separator: ", ")))"
  }
}

/// Returns the peak memory of this process.
private func peakMemory() -> String {
  do {
    let status = try String(contentsOfFile: "/proc/self/status", encoding: .utf8)
    return status.split(separator: "\n").first { $0.hasPrefix("VmHWM") }.map(String.init) ?? ""
  } catch {
    return "no /proc: \(error)"
  }
}
