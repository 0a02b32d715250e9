import FoundationEssentials
import WormholeWorkshop

/// The report of a worker: one entry per line, each with one write. So a process that is killed at
/// any instruction leaves at most one torn line, which readers skip.
enum JournalEntry: Codable, Equatable {
  /// Before an operation.
  case began(key: String, HistoryOperation.Call, at: UInt64)
  /// Within an update, before its change: the value that it found, and the one that it is about to write.
  case tried(from: HistoryValue?, to: HistoryValue?)
  /// The operation that began last has answered.
  case answered(HistoryOperation.Answer, at: UInt64)
  /// It has failed, and certainly changed nothing.
  case withoutEffect
  /// It has failed, and may have had its effect.
  case unknown
  /// An operation that is recorded afterwards.
  case observed(HistoryOperation)
  case did(String)
  /// An update began again because its lease had been taken over.
  case retried
  /// A change failed because its lease had been taken over.
  case lost
  case timedOut
  /// A call failed because etcd did not answer; nothing was done.
  case unreachable
  /// A call failed because etcd's answer was lost; the request may have been carried out.
  case inDoubt
  case late(String)
  case torn(String)
  /// Of two values that change in one step, one was older.
  case uneven(String)
  /// An observer or a watch received something older than before.
  case backwards(String)
  /// A watch did not report a change.
  case missed(String)
  case failed(String)
  case posting(bell: String, at: UInt64)
  case posted(at: UInt64)
  /// The post that was begun last was not made, because etcd did not answer.
  case unposted
  case checked(bell: String, from: UInt64, to: UInt64, heard: Bool)
  case queue(QueueEvent)
  case file(QueueEvent)
  /// About a log, as if it were a queue of each subscriber; without a reader it is about all of them.
  case log(reader: String?, QueueEvent)
  case request(RequestEvent)
  /// Everything that this strand began has ended.
  case rested

  /// The entry as a line of JSON.
  var line: String { get throws { try jsonText(self) + "\n" } }

  /// Returns the complete entries of a journal.
  static func parse(_ text: String) -> [JournalEntry] {
    let finished = text[..<(text.lastIndex(of: "\n") ?? text.startIndex)]
    // Each line is one write, but a full disk may leave a part of one, which readers skip.
    return finished.split(separator: "\n").compactMap { try? decoded(JournalEntry.self, from: $0) }
  }
}

extension [JournalEntry] {
  /// Returns the operations that may have had an effect or returned information, in their order.
  ///
  /// An operation without an end is one of unknown effect; an update that was not tried has had none.
  func operations(of process: Int) -> [HistoryOperation] {
    var operations: [HistoryOperation] = []
    var current: (key: String, call: HistoryOperation.Call, beginning: UInt64, isTried: Bool)?
    func end(_ outcome: HistoryOperation.Outcome) {
      guard let (key, call, beginning, isTried) = current.take() else { return }
      if outcome == .unknown, case .update = call, !isTried { return }
      operations.append(
        HistoryOperation(
          process: process, key: key, call: call, invocation: beginning, outcome: outcome))
    }
    for entry in self {
      switch entry {
      case .began(let key, let call, let time):
        end(.unknown)
        current = (key, call, time, false)
      case .tried(let from, let to):
        current?.call = .update(from: from, to: to)
        current?.isTried = true
      case .answered(let answer, let time): end(.completed(answer, at: time))
      case .withoutEffect: current = nil
      case .unknown: end(.unknown)
      case .observed(let operation): operations.append(operation)
      default: continue
      }
    }
    end(.unknown)
    return operations
  }
}

/// Returns a value as JSON on one line, because the processes of a run exchange one line at a time.
func jsonText(_ value: some Encodable) throws -> String {
  String(decoding: try JSONEncoder().encode(value), as: UTF8.self)
}

func decoded<Value: Decodable>(_ type: Value.Type, from json: some StringProtocol) throws -> Value {
  try JSONDecoder().decode(type, from: Data(json.utf8))
}

/// An entry of a journal about queues and files: what was sent, and its fate. The number identifies the
/// sender, because it continues from the sender's life.
enum QueueEvent: Codable, Equatable {
  /// The worker is about to send; the slot is the sender's place, and its name.
  case sending(place: String, slot: Int, number: UInt64)
  /// The entry that was begun last is stored, under an id.
  case sent(number: UInt64, id: String)
  /// It was not stored, because etcd did not answer.
  case unsent(number: UInt64)
  case cancelling(number: UInt64)
  case cancelled(number: UInt64, Bool)
  /// The worker became the consumer, at some time between two instants; each tenure has its own
  /// name.
  case consuming(place: String, tenure: String, from: UInt64, to: UInt64)
  /// The worker took an entry, at some time between two instants.
  case taken(
    place: String, tenure: String, slot: Int, number: UInt64, isRedelivery: Bool, from: UInt64,
    to: UInt64)
  case acknowledging(place: String, number: UInt64)
  case acknowledged(place: String, number: UInt64, at: UInt64)
  case failing(place: String, number: UInt64)
  /// The entry that was last to be acknowledged, or to fail, was not: its consumer was replaced, or etcd
  /// did not answer.
  case unsettled(place: String, number: UInt64)
}

/// An entry of a journal about requests.
enum RequestEvent: Codable, Equatable {
  case asking(number: UInt64)
  /// A call ended with an answer and its number, or with an error.
  case ended(number: UInt64, answer: UInt64?, how: String)
}
