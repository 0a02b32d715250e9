/// Handles one item after the other: until `count` are handled, the deadline has passed, or the process
/// is told to end.
struct ReceiveLoop {
  /// Nil for any number.
  let count: Int?
  let interruption: Interruption

  /// - Parameters:
  ///   - next: waits for the next item; nil when the deadline has passed.
  ///   - handle: returns the item's status; nil for an item that is delivered again and does not
  ///     count.
  /// - Returns: the last status that was not `done`; `.no` when the process was told to end before it
  ///   had handled `count` items.
  func run<Item: Sendable>(
    _ next: @escaping @Sendable () throws -> Item?, handle: (Item) throws -> ExitStatus?
  ) throws -> ExitStatus {
    var status = ExitStatus.done
    var remaining = count ?? .max
    while remaining > 0 {
      guard let found = try interruption.wait(for: next) else { return count == nil ? status : .no }
      guard let item = found else { return .deadline }
      guard let ended = try handle(item) else { continue }
      if ended != .done { status = ended }
      remaining -= 1
    }
    return status
  }
}
