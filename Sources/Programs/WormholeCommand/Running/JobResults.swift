import FoundationEssentials
import Wormhole
import WormholePropertyLists

/// How the commands of a queue have ended, and what they printed: the log `NAME.results`, so that it is
/// bounded, is the same on etcd, and can be followed.
struct JobResults {
  /// How much of the end of a command's output is kept.
  static let mostOutput = 64 << 10
  private static let bounds = LogBounds(messages: 100, bytes: 32 << 20)

  private let log: PlainLog

  init(of queue: PlainQueue) { log = queue.container.log("\(queue.name).results") }

  func add(_ result: JobResult) throws {
    // Bounds that were set stay.
    if try log.bounds() == .standard { try log.setBounds(Self.bounds) }
    try log.append(PropertyListValue(encoding: result))
  }

  /// Returns what is kept, in the order of the ends. Anything but a result is left out: any program
  /// may append to the log.
  func all() throws -> [JobResult] {
    guard try log.container.logNames().contains(where: { $0.utf8.elementsEqual(log.name.utf8) })
    else { return [] }
    let reader = try log.read()
    defer { reader.close() }
    var all: [JobResult] = []
    while let message = try reader.next(until: .now) {
      if let result = JobResult(message.payload) { all.append(result) }
    }
    return all
  }
}

/// The end of one attempt to run a command.
struct JobResult: Encodable {
  let id: String
  let attempt: Int
  let job: Job
  let began: Date
  let ended: Date
  /// As a shell gives it.
  let status: Int32
  /// Why that is a failure; nil if it is not one.
  let reason: String?
  let output: String

  private enum CodingKeys: String, CodingKey {
    case id, attempt, began, ended, reason, output
    case job = "value"
    case status = "exit"
  }
}

extension JobResult {
  /// - Parameter output: the end of what it printed, which may begin within a character.
  init(
    id: String, attempt: Int, job: Job, began: Date, ended: Date, status: Int32, reason: String?,
    output: [UInt8]
  ) {
    let isCut = output.count >= JobResults.mostOutput
    let text = String(
      decoding: isCut ? output.drop { $0 & 0xC0 == 0x80 } : output[...], as: UTF8.self)
    self.init(
      id: id, attempt: attempt, job: job, began: began, ended: ended, status: status,
      reason: reason, output: text)
  }

  /// - Returns: nil for another value.
  init?(_ value: PropertyListValue) {
    guard let id = value["id"]?.stringValue,
      let attempt = value["attempt"]?.intValue, (1...Int(Int32.max)).contains(attempt),
      let job = value["value"].flatMap(Job.init), let began = value["began"]?.dateValue,
      let ended = value["ended"]?.dateValue,
      let status = value["exit"]?.intValue.flatMap(Int32.init(exactly:)),
      let output = value["output"]?.stringValue
    else { return nil }
    self.init(
      id: id, attempt: attempt, job: job, began: began, ended: ended, status: status,
      reason: value["reason"]?.stringValue, output: output)
  }

  /// `ended with status 0`.
  var sentence: String { reason ?? "ended with status \(status)" }
}
