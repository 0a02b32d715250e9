import SystemCalls

/// Ordered entries that outlive the processes that sent them: many senders, one consumer at a time,
/// each entry delivered until it is acknowledged.
///
/// What one sender sends is delivered in its order, also across restarts, crashes and jumps of the
/// clock; between senders the time of sending decides. An entry that a consumer took and did not
/// acknowledge before it died, or was stopped and replaced, is delivered again, first and marked. One that
/// its consumer gives back for a while waits alone: what its sender has sent after it flows on.
public struct Queue: Sendable {
  /// The container that the queue is in.
  public let container: SharedContainer
  /// The queue's name.
  public let name: String

  let place: QueueDirectory
  let clock: @Sendable () -> UInt64

  /// How many entries may wait, and how many bytes, before a sender is refused.
  public struct Limits: Sendable, Hashable {
    /// The most entries that wait.
    public var entries: Int
    /// The most bytes that the files of those that wait have.
    public var bytes: Int

    /// One million entries, 1 GiB.
    public static let standard = Limits(entries: 1_000_000, bytes: 1 << 30)

    /// Makes limits.
    ///
    /// - Parameters:
    ///   - entries: the most entries that wait.
    ///   - bytes: the most bytes that their files have.
    public init(entries: Int, bytes: Int) {
      self.entries = entries
      self.bytes = bytes
    }
  }

  init(
    container: SharedContainer, name: String, kind: NameKind = .queue,
    clock: @escaping @Sendable () -> UInt64 = Queue.nanosecondsSince1970
  ) {
    self.container = container
    self.name = name
    self.clock = clock
    place = QueueDirectory(
      directory: NamedDirectory(root: container.root, kind: kind, identifier: name))
  }

  /// Where the entries are, or would be.
  public var path: String { place.directory.path }

  /// A sender of this process.
  ///
  /// Its order and the fate of its entries are known under its name; of two processes that use one
  /// name at once, each keeps its own order.
  ///
  /// - Parameters:
  ///   - sender: any string of at most 160 bytes once encoded as the names of values are.
  ///   - limits: how much may wait, of all senders together.
  /// - Throws: `AppGroupError`: `unsupportedValue` for a longer name.
  public func sender(_ sender: String, limits: Limits = .standard) throws -> Sender {
    let encoded = EncodedName(sender)
    guard encoded.component.utf8.count <= BatchName.maximumSenderBytes else {
      throw AppGroupError(
        .unsupportedValue, "send to \"\(name)\"", path: path,
        reason: "the sender's name has \(encoded.component.utf8.count) bytes once encoded",
        remedy: "take one of at most \(BatchName.maximumSenderBytes)")
    }
    return Sender(self, name: sender, component: encoded.component, limits: limits)
  }

  static let nanosecondsSince1970: @Sendable () -> UInt64 = {
    let (seconds, nanoseconds) = realTime()
    return UInt64(max(seconds, 0)) &* 1_000_000_000 &+ UInt64(max(nanoseconds, 0))
  }

  /// Who consumes is present here, exclusively.
  package var role: Presence {
    Presence(
      container: container, name: name,
      kind: NameKind(.consumer, isOwn: place.directory.kind.isOwn))
  }
}

extension SharedContainer {
  /// The queue of a name; nothing is touched before somebody sends or consumes.
  ///
  /// - Parameter name: any string, byte for byte.
  public func queue(_ name: String) -> Queue { Queue(container: self, name: name) }

  /// The names of all queues that somebody has sent to or consumed, in no order.
  ///
  /// - Throws: `AppGroupError` for what the file system refuses.
  public func queueNames() throws -> [String] { try identifiers(of: .queue) }
}

/// Which entry of a queue, for its sender to ask about; stays the same over restarts.
public struct QueueEntryID: Sendable, Hashable, CustomStringConvertible {
  let batch: BatchName
  let index: Int

  init(batch: BatchName, index: Int) {
    self.batch = batch
    self.index = index
  }

  /// Reads what `description` gave.
  ///
  /// - Returns: nil for any other text.
  public init?(_ description: String) {
    guard let slash = description.lastIndex(of: "/"),
      let batch = BatchName(description[..<slash]),
      let index = Int(description[description.index(after: slash)...]),
      (0..<batch.count).contains(index)
    else { return nil }
    self.init(batch: batch, index: index)
  }

  /// The id as text, to be kept.
  public var description: String { "\(batch.text)/\(index)" }

  /// The sender's name.
  public var sender: String { batch.senderName }
}

/// What has become of an entry.
public enum QueueEntryStatus: Sendable, Hashable {
  /// It waits.
  case stored
  /// A consumer has it, or had it and died, or has given it back for a later delivery.
  case taken
  /// It was acknowledged.
  case processed
  /// Its sender cancelled it; it was not delivered.
  case cancelled
  /// A newer entry of its sender with the same key has taken its place; it was not delivered.
  case superseded
  /// Its time was over; it was not delivered.
  case expired
  /// The consumer said that it failed, or it could not be read.
  case failed(reason: String)

  var reason: String? { if case .failed(let reason) = self { reason } else { nil } }

  /// Whether it changes no more.
  public var isEnd: Bool { self != .stored && self != .taken }
}
