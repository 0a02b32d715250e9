import SystemCalls

/// What waits, in the order of delivery, as of the last look.
///
/// A listing of a directory that changes meanwhile is no snapshot: it may show a file that was made
/// during it and miss an older one (readdir(3)). So there are two, and a batch counts if the second
/// shows it and it is not newer than one of its sender's that the first has shown: whatever is
/// older than that was there when the second began, and so is in it.
///
/// The next look comes when all is taken: so the cost of an entry does not grow with what waits.
struct PendingOrder {
  /// The next at the end.
  private var waiting: [BatchName] = []

  var next: BatchName? { waiting.last }

  /// The next is taken, or gone.
  mutating func removeNext() { waiting.removeLast() }

  /// - Parameter list: lists what waits.
  mutating func look(_ list: () throws -> [BatchName]) rethrows {
    var newest: [String: UInt64] = [:]
    for batch in try list() { newest[batch.sender] = max(newest[batch.sender] ?? 0, batch.order) }
    guard !newest.isEmpty else { return }
    waiting = try list().filter { batch in newest[batch.sender].map { batch.order <= $0 } ?? false }
    waiting.sort(by: >)
  }
}
