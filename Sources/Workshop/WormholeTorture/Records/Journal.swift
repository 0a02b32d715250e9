import FoundationEssentials
import Wormhole
import WormholeEtcd
import WormholeSystem
import WormholeWorkshop

/// A worker's report: one entry per line, each with one write. So a process that is killed at any
/// instruction leaves at most one torn line, which readers skip.
enum JournalEntry: Codable, Equatable {
  /// Before an operation.
  case began(key: String, HistoryOperation.Call, at: UInt64)
  /// Within an update, before its change: the value that it found, and the one that it is about to write.
  case tried(from: HistoryValue?, to: HistoryValue?)
  /// The last operation has answered.
  case answered(HistoryOperation.Answer, at: UInt64)
  /// It has failed, and certainly changed nothing.
  case withoutEffect
  /// It has failed, and may have had its effect.
  case unknown
  /// A report to an observer, as a read.
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
  /// A promise was broken, as a sentence says.
  case broke(Promise, String)
  case checked(name: String, from: UInt64, to: UInt64, heard: Bool)
  case delivery(Delivery)
  case request(RequestEvent)
  /// Everything that this client began has ended.
  case rested

  var line: String { get throws { try jsonText(self) + "\n" } }

  /// Returns the complete entries of a journal.
  static func parse(_ text: String) -> [JournalEntry] {
    let finished = text[..<(text.lastIndex(of: "\n") ?? text.startIndex)]
    // Each line is one write, but a full disk may leave a part of one, which readers skip.
    return finished.split(separator: "\n").compactMap { try? decoded(JournalEntry.self, from: $0) }
  }
}

/// A promise whose breach a worker notices by itself.
enum Promise: String, Codable {
  case whole = "no value is torn or mixed"
  case together = "several values change in one step"
  case inTime = "no wait goes beyond its deadline"
  case noFault = "no operation fails for another reason"
  /// On etcd, where an observer may be behind.
  case forwards = "no observer and no watch goes backwards"
  case everyChange = "a watch reports every change"
}

/// A step of an entry's way through a queue, or of a file's or a log message's. In a log, each
/// subscriber is a place to which the message goes.
struct Delivery: Codable, Equatable {
  let place: String
  /// It identifies the sender, because it continues from the sender's life; 0 for a consumer.
  let number: UInt64
  let event: Event

  enum Event: Codable, Equatable {
    /// The worker is about to send; the slot is the sender's place, and its name.
    case sending(slot: Int)
    /// The entry is stored, under an id.
    case sent(id: String)
    /// It was not stored, because etcd did not answer.
    case unsent
    case cancelling
    case cancelled(Bool)
    /// The worker became the consumer, at some time between two instants; each epoch has its own
    /// name.
    case consuming(epoch: String, from: UInt64, to: UInt64)
    /// The worker took the entry, at some time between two instants.
    case taken(epoch: String, slot: Int, isRedelivery: Bool, from: UInt64, to: UInt64)
    case acknowledging
    case acknowledged(at: UInt64)
    case failing
    /// The entry that was to be acknowledged, or to fail, was not: its consumer was replaced, or etcd did
    /// not answer.
    case unsettled
  }
}

/// An entry of a journal about requests.
enum RequestEvent: Codable, Equatable {
  case asking(number: UInt64)
  /// A call ended with an answer and its number, or with an error.
  case ended(number: UInt64, answer: UInt64?, how: String)
}

extension [JournalEntry] {
  /// Returns the operations that may have had an effect or returned information, in order.
  ///
  /// An operation without an end has an unknown effect; an update that was not tried had none.
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

/// The journal of one client of a worker.
struct Journal {
  let life: Int
  var kind = Kind.values
  let entries: [JournalEntry]
}

struct Records {
  var operations: [HistoryOperation] = []
  /// The posts of notifications, as writes.
  var posts: [HistoryOperation] = []
  /// The reports to their observers, as reads.
  var observations: [HistoryOperation] = []
  /// The journal of each client of each worker.
  var journals: [Journal] = []

  init() {}

  init(_ directory: RunDirectory, lives: Int) throws {
    for life in 1...lives {
      for kind in Kind.allCases {
        // A worker may be killed before it has written an entry.
        let text = try ifPresent(textOfFile(directory.journal(life: life, kind))) ?? ""
        let entries = JournalEntry.parse(text)
        operations += entries.operations(of: Workload.process(life: life, kind))
        for case .observed(let read) in entries { observations.append(read) }
        journals.append(Journal(life: life, kind: kind, entries: entries))
      }
    }
    let isPost = { (operation: HistoryOperation) in Workload.notifications.contains(operation.key) }
    posts = operations.filter(isPost)
    operations.removeAll(where: isPost)
  }

  /// Returns the deliveries of a client, for each worker.
  func deliveries(_ kind: Kind) -> [[Delivery]] {
    journals.filter { $0.kind == kind }.map { journal in
      journal.entries.compactMap { if case .delivery(let delivery) = $0 { delivery } else { nil } }
    }
  }

  func count(_ entry: JournalEntry) -> Int {
    journals.reduce(0) { $0 + $1.entries.count { $0 == entry } }
  }

  /// The number of successful operations of each kind.
  var kinds: [(kind: String, count: Int)] {
    var counts: [String: Int] = [:]
    for case .did(let kind) in journals.map(\.entries).joined() { counts[kind, default: 0] += 1 }
    return counts.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
  }
}

/// The directory of a run's files, and the place of its container.
struct RunDirectory: Codable {
  let path: String
  /// The place on etcd, as text; nil if the container is a directory in this one.
  var etcd: String?

  var container: String { path + "/container" }
  private var records: String { path + "/records" }

  /// Returns the path of the file that is sent under a number.
  func file(_ number: UInt64) -> String { "\(path)/files/\(number)" }
  func journal(life: Int, _ kind: Kind) -> String { "\(records)/journal-\(life)-\(kind)" }

  func open() throws -> SharedContainer {
    guard let etcd else { return try SharedContainer(path: container) }
    return try SharedContainer(at: EtcdLocation(etcd), companion: container)
  }

  func create() throws(Errno) {
    for directory in [path, container, records, path + "/files"] { try makeDirectory(directory) }
  }
}
