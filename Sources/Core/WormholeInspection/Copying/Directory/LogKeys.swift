import Wormhole

/// Reads a log's directory as keys: the keys that its files would have on etcd.
struct LogKeys {
  let log: PlainLog

  /// - Throws: `WormholeError.damaged` for a state that cannot be read: then the log is left out.
  func read(_ put: (CopiedKey) throws -> Void) throws {
    let snapshot = try log.value.snapshot()
    guard let state = try LogState.read(snapshot, at: log.value.path),
      let bytes = try snapshot.storedBytes(), let place = try LogDirectory(log.value.directory)
    else { return }
    try put(CopiedKey(stateOfLog: log.name, bytes))
    // Other numbers belong to another program's files, or to messages that were taken away.
    let last = try place.head(after: state.head)
    for number in try place.numbers().sorted() where state.first <= number && number <= last {
      guard case .bytes(let bytes, _) = try place.read(number) else { continue }
      try put(CopiedKey(log: log.name, part: CopiedKey.message(number), bytes))
    }
    let head = Array("0 \(String(last, radix: 16))".utf8)
    try put(CopiedKey(log: log.name, part: CopiedKey.head, head))
  }
}

extension CopiedKey {
  /// The part with the number of the last message.
  static let head = "h"
  private static let messages = "m/"

  static func message(_ number: Int) -> String { messages + LogState.digits(of: number) }

  /// The number of the message that a log's key has; nil for any other key.
  var messageNumber: Int? {
    part.hasPrefix(Self.messages) ? LogState.number(ofDigits: part.utf8.dropFirst(2)) : nil
  }
}
