import Wormhole

/// Messages that came on a mailbox's wire, until they are delivered in their order among files.
struct WireBacklog {
  enum Step {
    case deliver(MailboxWire.Message)
    /// The sender of this message stored a file before it that was not seen yet.
    case lookForFiles(before: MailboxWire.Message)
    /// A file comes first, or there is no message.
    case none
  }

  /// The number of messages that are held while a file before them cannot be read; more stay in the
  /// socket, and their senders use files.
  private static let most = 10_000
  /// The number of senders whose files are remembered; a forgotten one costs a look.
  private static let mostSenders = 4_096

  /// By their order.
  private var messages: ArraySlice<MailboxWire.Message> = []
  /// The order of the last file of each sender that was delivered, or looked for.
  private var files: [UInt64: UInt64] = [:]

  var room: Int { Self.most - messages.count }

  mutating func add(_ new: [MailboxWire.Message]) {
    messages = (messages + new).ordered { $0.order < $1.order }[...]
  }

  /// Returns the next step, and removes a message to deliver.
  mutating func next(before file: EntryFile?) -> Step {
    guard let next = messages.first, file.map({ next.order < $0.order }) ?? true else {
      return .none
    }
    guard next.fileBefore <= files[next.sender] ?? 0 else { return .lookForFiles(before: next) }
    messages.removeFirst()
    return .deliver(next)
  }

  mutating func noteDelivered(_ file: EntryFile) {
    // Another program's sender may have any name, and sends no messages.
    guard let sender = UInt64(file.sender, radix: 16) else { return }
    note(file.order, of: sender)
  }

  mutating func note(_ order: UInt64, of sender: UInt64) {
    if files.count >= Self.mostSenders { files = [:] }
    files[sender] = max(order, files[sender] ?? 0)
  }
}
