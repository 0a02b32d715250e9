import Dispatch
import Synchronization
import Wormhole
import WormholePeers
import WormholePropertyLists
import WormholeSystem
import WormholeToolkit
import WormholeWorkshop

/// A client that sends requests to the other workers, and answers theirs: at once, late, with an
/// error, or not at all.
final class RequestClient: Sendable {
  private let session: PeerSession
  private let recorder: Recorder
  private let processes: Int
  private let open = Mutex(0)

  static func name(slot: Int) -> String { "worker-\(slot)" }

  init(_ session: PeerSession, _ recorder: Recorder, processes: Int) {
    self.session = session
    self.recorder = recorder
    self.processes = processes
    session.handleRequests(on: DispatchQueue(label: "torture.requests")) { request in
      // It fails if the sender has ended meanwhile; a living sender learns of a missing answer.
      try? Self.answer(request)
    }
  }

  private static func answer(_ request: PeerRequest) throws {
    let number = request.value.uint64Value ?? 0
    switch mix(number) % 20 {
    case 0: return
    case 1: try request.fail("on purpose")
    case 2:
      pauseThread(.milliseconds(30))
      try request.reply(request.value)
    default: try request.reply(request.value)
    }
  }

  func round(_ random: inout SeededGenerator) throws {
    if !session.isActive { try session.activate(until: .now + .seconds(5)) }
    let peer = Self.name(slot: Int.random(in: 0..<processes, using: &random))
    for _ in 0..<Int.random(in: 1...4, using: &random) {
      try ask(peer, random.milliseconds(random.chance(10) ? 0...5 : 50...1_000), random: &random)
    }
  }

  private func ask(_ peer: String, _ timeout: Duration, random: inout SeededGenerator) throws {
    let number = recorder.newNumber()
    try recorder.note(.request(.asking(number: number)))
    guard random.chance(50) else {
      let watch = Stopwatch()
      let result: Result<PropertyListValue, WormholeError>
      do {
        result = .success(
          try session.request(PropertyListValue(number), to: peer, until: .now + timeout))
      } catch let error as WormholeError {
        result = .failure(error)
      }
      try recorder.check(watch, patience: timeout, "request to \(peer)")
      return end(number, result)
    }
    open.withLock { $0 += 1 }
    let call = session.request(PropertyListValue(number), to: peer, until: .now + timeout) {
      [weak self] result in
      self?.end(number, result)
      self?.open.withLock { $0 -= 1 }
    }
    if random.chance(10) { call.cancel() }
  }

  private func end(_ number: UInt64, _ result: Result<PropertyListValue, WormholeError>) {
    let event: RequestEvent
    switch result {
    case .success(let value):
      event = .ended(number: number, answer: value.uint64Value ?? 0, how: "answered")
    case .failure(let error):
      let isUndelivered = error.code == .failed && error.reason.hasPrefix(IncomingCall.undelivered)
      event = .ended(
        number: number, answer: nil,
        how: isUndelivered ? RequestChecks.undelivered : error.code.rawValue)
    }
    recorder.noteOrEnd(.request(event), .did("request"))
  }

  /// Waits until all calls have ended, as their timeouts promise.
  func settle() {
    _ = poll(until: .now + Recorder.allowance) { open.withLock { $0 } == 0 }
  }
}

/// The checks of the journals about requests.
struct RequestChecks {
  /// The end of a request whose answer could not be delivered; only etcd can be unreachable.
  static let undelivered = "undelivered"

  let journals: [Journal]
  let isOnEtcd: Bool

  var all: [Check] {
    var asked = 0
    var twice: [String] = []
    var never: [String] = []
    var others: [String] = []
    var odd: [String] = []
    var codes: [String: Int] = [:]
    var expected: Set<String> = [
      "answered", "failed", "notAnswered", "unreachable", "timedOut", "cancelled",
    ]
    if isOnEtcd { expected.formUnion([Self.undelivered, "clusterUnreachable"]) }
    for journal in journals {
      let events = journal.entries.compactMap {
        if case .request(let event) = $0 { event } else { nil }
      }
      let isWhole = journal.entries.contains(.rested)
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
        _ = try session.request(1, to: RequestClient.name(slot: slot), until: .now + .seconds(20))
        evidence.append("worker-\(slot) answers")
      } catch let error as WormholeError {
        let took = ContinuousClock.now - beginning
        if error.code != .unreachable || took > .seconds(5) {
          evidence.append("worker-\(slot): \(error.code.rawValue) after \(took)")
        }
      }
    }
    return Check(
      "a process that has ended is unreachable at once", "\(processes) peers", evidence: evidence)
  }
}
