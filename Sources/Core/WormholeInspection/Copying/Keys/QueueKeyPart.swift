/// The parts of a queue's keys: `q/<name>/<part>/…`; see `ContainerKey`.
///
/// The letters of consumers, claims and entries follow each other, so one range has all three.
package enum QueueKeyPart: String, Sendable {
  /// The manifests of files whose entries wait, or are not stored yet.
  case waitingFiles = "a"
  case consumers = "c"
  case claims = "d"
  case entries = "e"
  case failures = "f"
  /// The newest entry with each key of a sender.
  case marks = "k"
  case outcomes = "o"
  case receipts = "r"
  case senders = "s"
  /// The content of files.
  case pieces = "t"
  /// The manifests of files whose entries are taken.
  case takenFiles = "u"
  /// Batches that could not be read, put aside.
  case foreign = "x"

  /// Returns what follows the queue's name in a key of this part.
  package func text(_ name: String = "") -> String { "\(rawValue)/\(name)" }

  package func bytes(_ name: String = "") -> [UInt8] { Array(text(name).utf8) }
}
