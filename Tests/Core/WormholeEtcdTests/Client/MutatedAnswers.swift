import Synchronization
import WormholeTestSupport

@testable import WormholeEtcd

/// Writes down what etcd answers.
final class AnswerRecorder: EtcdTransport {
  private let client = HTTPClient()
  private let recorded = Mutex<[HTTPAnswer]>([])

  var answers: [HTTPAnswer] { recorded.withLock { $0 } }

  func post(
    _ request: HTTPRequest, maximumBytes: Int, until deadline: ContinuousClock.Instant
  ) throws(HTTPError) -> HTTPAnswer {
    let answer = try client.post(request, maximumBytes: maximumBytes, until: deadline)
    recorded.withLock { $0.append(answer) }
    return answer
  }
}

/// Gives the recorded answers in their order, apart from one.
final class Liar: EtcdTransport {
  /// What follows the lie.
  enum Continuation: CaseIterable {
    case recorded
    case ended
    case repeated
  }

  private let answers: [HTTPAnswer]
  private let place: Int
  private let lie: HTTPAnswer
  private let continuation: Continuation
  private let next = Atomic(0)
  private let last = Mutex<ContinuousClock.Instant?>(nil)

  init(_ answers: [HTTPAnswer], at place: Int, _ lie: HTTPAnswer, then continuation: Continuation) {
    self.answers = answers
    self.place = place
    self.lie = lie
    self.continuation = continuation
  }

  /// When it was asked last.
  var lastQuestion: ContinuousClock.Instant? { last.withLock { $0 } }

  func post(
    _ request: HTTPRequest, maximumBytes: Int, until deadline: ContinuousClock.Instant
  ) throws(HTTPError) -> HTTPAnswer {
    last.withLock { $0 = .now }
    let number = next.wrappingAdd(1, ordering: .relaxed).oldValue
    let answer: HTTPAnswer
    if number == place || number > place && continuation == .repeated {
      answer = lie
    } else if number < answers.count, number < place || continuation == .recorded {
      answer = answers[number]
    } else {
      // Nothing is asked again after this.
      throw HTTPError(.libraryMissing, "the record has ended")
    }
    guard answer.content.count <= maximumBytes else { throw HTTPError(.tooLarge, "it is long") }
    return answer
  }
}

/// JSON with the places of its values, to change one of them.
struct MutableJSON {
  private struct Value {
    let range: Range<Int>
    /// The same with its name.
    let member: Range<Int>
  }

  private let bytes: [UInt8]
  private var values: [Value] = []

  init(_ bytes: [UInt8]) {
    self.bytes = bytes
    var place = 0
    while place < bytes.count, bytes[place] > 32 { parse(&place, from: place) }
  }

  private mutating func parse(_ place: inout Int, from name: Int) {
    place = min(place, bytes.count)
    let start = place
    switch place < bytes.count ? bytes[place] : 0 {
    case UInt8(ascii: "{"), UInt8(ascii: "["):
      let isObject = bytes[place] == UInt8(ascii: "{")
      place += 1
      while place < bytes.count, bytes[place] != UInt8(ascii: "}"),
        bytes[place] != UInt8(ascii: "]")
      {
        let name = place
        if isObject {
          skipText(&place)
          place += 1
        }
        parse(&place, from: name)
        if place < bytes.count, bytes[place] == UInt8(ascii: ",") { place += 1 }
      }
      place += 1
    case UInt8(ascii: "\""): skipText(&place)
    default: place = bytes[place...].firstIndex { $0 < 45 || $0 == 93 || $0 == 125 } ?? bytes.count
    }
    // A byte that belongs nowhere.
    place = min(bytes.count, max(place, start + 1))
    values.append(Value(range: start..<place, member: min(name, start)..<place))
  }

  private func skipText(_ place: inout Int) {
    place += 1
    while place < bytes.count, bytes[place] != UInt8(ascii: "\"") {
      place += bytes[place] == UInt8(ascii: "\\") ? 2 : 1
    }
    place += 1
  }

  private static let words = [
    "null", "true", "{}", "[]", "[[]]", "\"\"", "\"x\"", "\"!\"", "0", "-1", "1e400", "\"0\"",
    "\"-1\"", "\"9223372036854775807\"", "\"-9223372036854775808\"", "\"18446744073709551616\"",
    "\"4611686018427387904\"", "\"AAAA\"", "[null]", "{\"key\":\"\"}",
  ]
  private static let answers = ["", "{}", "[]", "null", "<html></html>", "{\"header\":{}}", "\"\""]

  /// Returns the same with a value left out, doubled, of another type or from another place, or cut
  /// off, or something else.
  func mutated(by generator: inout some RandomNumberGenerator) -> [UInt8] {
    guard let value = values.randomElement(using: &generator) else { return bytes }
    func replacing(_ range: Range<Int>, by new: some Collection<UInt8>) -> [UInt8] {
      Array(bytes[..<range.lowerBound]) + Array(new) + Array(bytes[range.upperBound...])
    }
    switch Int.random(in: 0..<12, using: &generator) {
    case 0, 1, 2:
      let hasNext = value.member.upperBound < bytes.count && bytes[value.member.upperBound] == 44
      let hasLast = value.member.lowerBound > 0 && bytes[value.member.lowerBound - 1] == 44
      let (first, end) = (value.member.lowerBound, value.member.upperBound)
      return replacing(hasNext ? first..<end + 1 : hasLast ? first - 1..<end : first..<end, by: [])
    case 3, 4:
      let end = value.member.upperBound
      return replacing(end..<end, by: [44] + bytes[value.member])
    case 5, 6, 7:
      let word = Self.words.randomElement(using: &generator) ?? ""
      return replacing(value.range, by: word.utf8)
    case 8, 9:
      let other = values.randomElement(using: &generator) ?? value
      return replacing(value.range, by: bytes[other.range])
    case 10: return Array(bytes.prefix(Int.random(in: 0...bytes.count, using: &generator)))
    default: return Array((Self.answers.randomElement(using: &generator) ?? "").utf8)
    }
  }
}
