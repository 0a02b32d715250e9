import AppGroup
import PeerConnectivity
import PropertyLists

/// The checks of the journals about requests.
struct RequestChecks {
  let journals: [(events: [RequestEvent], isWhole: Bool)]

  var all: [Check] {
    var asked = 0
    var twice: [String] = []
    var never: [String] = []
    var others: [String] = []
    var odd: [String] = []
    var codes: [String: Int] = [:]
    let expected: Set<String> = [
      "answered", "failed", "notAnswered", "unreachable", "timedOut", "cancelled",
    ]
    for (events, isWhole) in journals {
      var ends: [UInt64: Int] = [:]
      for case .ended(let number, let answer, let how) in events {
        ends[number, default: 0] += 1
        codes[how, default: 0] += 1
        if let answer, answer != number { others.append("request \(number) got \(answer)") }
        if !expected.contains(how) { odd.append("request \(number): \(how)") }
        // The number determines what the handler does.
        if how == "failed", mix(number) % 20 != 1 { odd.append("request \(number): \(how)") }
      }
      for case .asking(let number) in events {
        asked += 1
        let count = ends[number] ?? 0
        if count > 1 { twice.append("request \(number) ended \(count) times") }
        if count == 0, isWhole { never.append("request \(number) never ended") }
      }
    }
    let kinds = codes.sorted { $0.key < $1.key }.map { "\($0.value) \($0.key)" }
    return [
      Check("a request ends exactly once", "\(asked) requests", firstOf: twice + never),
      Check(
        "every reply belongs to its request, and errors are the expected ones",
        kinds.joined(separator: ", "), firstOf: others + odd),
    ]
  }

  /// After all workers have ended, each of them is unreachable at once.
  static func deadPeers(_ container: SharedContainer, _ processes: Int) throws -> Check {
    let session = try PeerSession("main", in: container)
    var evidence: [String] = []
    for slot in 0..<processes {
      let beginning = ContinuousClock.now
      do {
        _ = try session.request(1, to: RequestStrand.name(slot: slot), until: .now + .seconds(20))
        evidence.append("worker-\(slot) answers")
      } catch let error as PeerError {
        let took = ContinuousClock.now - beginning
        if error.code != .unreachable || took > .seconds(5) {
          evidence.append("worker-\(slot): \(error.code.rawValue) after \(took)")
        }
      }
    }
    return Check(
      promise: "a process that has ended is unreachable at once", extent: "\(processes) peers",
      evidence: evidence)
  }
}
