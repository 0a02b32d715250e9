import AppGroup
import Dispatch
import PeerConnectivity
import PropertyLists
import Synchronization
import SystemCalls

/// A line of a journal about requests.
enum RequestEvent: Equatable {
  case asking(number: UInt64)
  /// A call ended: with whose number, if it was answered, or with an error.
  case ended(number: UInt64, answer: UInt64?, how: String)

  var line: String {
    switch self {
    case .asking(let number): "asking \(number)\n"
    case .ended(let number, let answer, let how):
      "ended \(number) \(answer.map(String.init) ?? "-") \(how)\n"
    }
  }

  init?(words: [Substring]) {
    guard words.count > 1, let number = UInt64(words[1]) else { return nil }
    switch (words[0], words.count) {
    case ("asking", 2): self = .asking(number: number)
    case ("ended", 4):
      self = .ended(number: number, answer: UInt64(words[2]), how: String(words[3]))
    default: return nil
    }
  }
}

/// Asks the other workers, and answers them: at once, late, with an error, or not at all.
final class RequestStrand: Sendable {
  private let session: PeerSession
  private let recorder: Recorder
  private let arguments: WorkerArguments
  private let next: Mutex<UInt64>
  private let queue = DispatchQueue(label: "torture.requests")
  private let open = Mutex(0)

  static func name(slot: Int) -> String { "worker-\(slot)" }

  init(
    _ session: PeerSession, _ recorder: Recorder, _ arguments: WorkerArguments
  ) throws {
    self.session = session
    self.recorder = recorder
    self.arguments = arguments
    next = Mutex(Workload.firstNumber(life: arguments.life))
    session.requests.handle(on: queue) { request in
      do {
        try Self.answer(request)
      } catch {
        // Who asked has ended meanwhile; those who live learn of a missing answer.
        return
      }
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

  func turn(_ random: inout SeededGenerator) throws {
    if !session.isActive { try session.activate(until: .now + .seconds(5)) }
    let peer = Self.name(slot: Int.random(in: 0..<arguments.processes, using: &random))
    for _ in 0..<Int.random(in: 1...4, using: &random) {
      try ask(peer, random.milliseconds(random.chance(10) ? 0...5 : 50...1_000), &random)
    }
  }

  private func ask(
    _ peer: String, _ timeout: Duration, _ random: inout SeededGenerator
  ) throws {
    let number = next.withLock { next in
      next += 1
      return next
    }
    try recorder.note(.request(.asking(number: number)))
    guard random.chance(50) else {
      let beginning = ContinuousClock.now
      let result: Result<PropertyListValue, PeerError>
      do {
        result = .success(try session.request(PropertyListValue(number), to: peer, timeout: timeout))
      } catch let error as PeerError {
        result = .failure(error)
      }
      let took = ContinuousClock.now - beginning
      if took > timeout + Recorder.allowance {
        try recorder.note(.late("request to \(peer) took \(took), its timeout was \(timeout)"))
      }
      return end(number, result)
    }
    open.withLock { $0 += 1 }
    let call = session.request(PropertyListValue(number), to: peer, timeout: timeout) {
      [weak self] result in
      self?.end(number, result)
      self?.open.withLock { $0 -= 1 }
    }
    if random.chance(10) { call.cancel() }
  }

  private func end(_ number: UInt64, _ result: Result<PropertyListValue, PeerError>) {
    let event: RequestEvent
    switch result {
    case .success(let value):
      event = .ended(number: number, answer: value.uint64Value ?? 0, how: "answered")
    case .failure(let error): event = .ended(number: number, answer: nil, how: error.code.rawValue)
    }
    do throws(Errno) {
      try recorder.note(.request(event))
      try recorder.note(.did("request"))
    } catch {
      Terminal.say("torture: cannot write the journal: \(error)")
      Program.exit(74)
    }
  }

  /// Waits until all calls have ended, as their timeouts promise.
  func settle() {
    let deadline = ContinuousClock.now + Recorder.allowance
    while open.withLock({ $0 }) > 0, ContinuousClock.now < deadline {
      pauseThread(.milliseconds(5))
    }
  }
}

/// Checks of what the journals say of requests.
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
        // What its handler does is known by the number.
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
      Check(
        promise: "a request ends exactly once", extent: "\(asked) requests",
        evidence: Array((twice + never).prefix(3))),
      Check(
        promise: "no reply answers another's question, and errors are what they should be",
        extent: kinds.joined(separator: ", "), evidence: Array((others + odd).prefix(3))),
    ]
  }

  /// When all workers have ended, each of them is unreachable at once.
  static func deadPeers(_ container: SharedContainer, _ processes: Int) throws -> Check {
    let session = try PeerSession(container, name: "main")
    var evidence: [String] = []
    for slot in 0..<processes {
      let beginning = ContinuousClock.now
      do {
        _ = try session.request(1, to: RequestStrand.name(slot: slot), timeout: .seconds(20))
        evidence.append("worker-\(slot) answers")
      } catch let error as PeerError {
        let took = ContinuousClock.now - beginning
        if error.code != .unreachable || took > .seconds(5) {
          evidence.append("worker-\(slot): \(error.code.rawValue) after \(took)")
        }
      }
    }
    return Check(
      promise: "who has ended is unreachable at once", extent: "\(processes) peers",
      evidence: evidence)
  }
}
