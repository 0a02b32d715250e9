import Synchronization
package import Wormhole
import WormholeSystem

/// `mailboxes/<address>/wire`: a Unix socket for small messages between two live processes, which
/// costs a send and a receive instead of a file. A file is the fallback at every step: for large
/// content, for a receiver that has fallen behind or has no socket, for programs that know only
/// files, and while a process observes the mailboxes (`MailboxObservation`).
///
/// A datagram, its numbers with the most significant byte first:
///
/// ```
/// 1 byte    the version of this layout: 1
/// 8 bytes   the sender: a nonce of one writer
/// 8 bytes   the order, as in the name of an entry
/// 8 bytes   the order of the last entry that this sender stored as a file; 0 if there is none
/// the rest  the content
/// ```
///
/// **Order.** The last number says whether a file comes before the datagram; and the datagrams that
/// come before a file are in the socket when the file gets its name. So the receiver puts both in
/// order (`DirectoryMailbox`).
///
/// **Its end.** What waits in the socket ends with the receiver, as its unread files do.
final class MailboxWire: Sendable {
  static let name = "wire"
  /// Larger content goes as a file: it is rare, and would take the socket's room from others.
  static let maximumBytes = 16_384

  struct Message: Sendable {
    let sender: UInt64
    let order: UInt64
    let fileBefore: UInt64
    let content: [UInt8]

    private static let version: UInt8 = 1
    static let headerBytes = 25

    init(sender: UInt64, order: UInt64, fileBefore: UInt64, content: [UInt8]) {
      (self.sender, self.order, self.fileBefore) = (sender, order, fileBefore)
      self.content = content
    }

    /// Parses a datagram of any origin; nil for anything else.
    init?(_ datagram: [UInt8]) {
      guard datagram.count >= Self.headerBytes, datagram[0] == Self.version else { return nil }
      func number(at place: Int) -> UInt64 {
        datagram.withUnsafeBytes {
          UInt64(bigEndian: $0.loadUnaligned(fromByteOffset: place, as: UInt64.self))
        }
      }
      self.init(
        sender: number(at: 1), order: number(at: 9), fileBefore: number(at: 17),
        content: Array(datagram[Self.headerBytes...]))
    }

    var datagram: [UInt8] {
      var bytes: [UInt8] = []
      bytes.reserveCapacity(Self.headerBytes + content.count)
      bytes.append(Self.version)
      for field in [sender, order, fileBefore] { bytes.append(number: field) }
      return bytes + content
    }
  }

  private let socket: FileDescriptor
  /// Wakes the thread that leads.
  private let counter: FileDescriptor
  private let isOver = Atomic(false)
  private let isLed = Atomic(false)
  /// How often in a row a receive has failed: meanwhile the socket may stay readable.
  private let failures = Atomic(0)
  /// After this many, senders have to use files.
  private static let mostFailures = 5

  /// Makes the socket of a mailbox.
  ///
  /// - Parameter directory: The mailbox's, before others know it.
  /// - Throws: If the file system has no sockets, /proc or a free descriptor is missing, or a call
  ///   is forbidden.
  init(in directory: Int32, _ access: ContainerAccess) throws(Errno) {
    // By the descriptor, because a container's path may be longer than an address.
    counter = try .wakeUpCounter()
    socket = try .datagramSocket(receivingAt: "/proc/self/fd/\(directory)/\(Self.name)")
    // A sandbox may forbid receiving; then there must be no wire.
    _ = try socket.receiveDatagram(maximumBytes: 1)
    try setPermissions(FileName(Self.name), at: directory, access.fileMode)
  }

  /// Waits until a message has come.
  ///
  /// - Returns: False once `end` was called.
  func wait() -> Bool {
    while !isOver.load(ordering: .acquiring) {
      if failures.load(ordering: .relaxed) > 0 { pauseThread(ChangeMonitor.pollInterval) }
      do throws(Errno) {
        if try waitReadable([socket.rawValue], until: nil)[0] {
          return !isOver.load(ordering: .acquiring)
        }
      } catch {
        // The kernel lacks memory.
        pauseThread(ChangeMonitor.pollInterval)
      }
    }
    return false
  }

  /// Waits like `wait`, on a caller's thread, until a latch is raised or a deadline has passed.
  ///
  /// - Parameter read: Delivers what has come; false if another thread does.
  /// - Returns: False if another thread leads already, or the wait has to continue without leading.
  func lead(
    for latch: WakeLatch, until deadline: ContinuousClock.Instant, _ read: () -> Bool
  ) -> Bool {
    guard !isLed.exchange(true, ordering: .acquiring) else { return false }
    defer { isLed.store(false, ordering: .releasing) }
    do throws(Errno) {
      let wakeUp: @Sendable () -> Void = { [self] in
        // It fails if the counter is full: then this thread is about to wake up anyway (eventfd(2)).
        try? counter.raiseCounter()
      }
      while latch.wake(until: nil, wakeUp) {
        let ready = try waitReadable([socket.rawValue, counter.rawValue], until: deadline)
        if ready[1] { try counter.lowerCounter() }
        guard latch.sleepsNoMore() else { return true }
        guard ContinuousClock.now < deadline else { return true }
        if ready[0], isOver.load(ordering: .acquiring) || !read() { return false }
        if failures.load(ordering: .relaxed) > 0 { return false }
      }
      return true
    } catch {
      // No memory: wait the other way.
      return !latch.sleepsNoMore()
    }
  }

  /// Takes waiting messages, up to a number of datagrams.
  ///
  /// Any process of the container's users may send datagrams; only messages are returned.
  func take(atMost count: Int) -> [Message] {
    var found: [Message] = []
    do throws(Errno) {
      let most = Message.headerBytes + Self.maximumBytes
      for _ in 0..<count {
        guard let datagram = try socket.receiveDatagram(maximumBytes: most) else { break }
        if let message = Message(datagram) { found.append(message) }
      }
      failures.store(0, ordering: .relaxed)
    } catch {
      // The kernel lacks memory, or a sandbox forbids the call: tried again after a pause.
      if failures.add(1, ordering: .relaxed).newValue == Self.mostFailures { end() }
    }
    return found
  }

  /// Ends `wait`; senders are refused from now on, and use files.
  func end() {
    isOver.store(true, ordering: .releasing)
    // It fails only for a socket that has ended already.
    try? socket.endReceiving()
  }

  // MARK: Sending

  /// A sender's end: the socket of one mailbox.
  final class Outlet: Sendable {
    private let socket: FileDescriptor
    private let observer: String

    /// The number of descriptors that a process spends on this; beyond it, messages go as files.
    private static let maximum = 256
    private static let count = Atomic(0)

    /// - Parameter mailbox: Its path relative to the container.
    /// - Throws: If there is no such socket, or no receiver; `.tooManyOpenFiles` beyond the
    ///   maximum.
    init(to mailbox: String, in container: ContainerRoot.Handle) throws(Errno) {
      observer = MailboxObservation.address(container)
      let count = Self.count.add(1, ordering: .relaxed).newValue
      do throws(Errno) {
        guard count <= Self.maximum else { throw .tooManyOpenFiles }
        socket = try FileDescriptor.openBeneath(
          mailbox + "/" + MailboxWire.name, at: container.descriptor.rawValue, .pathOnly
        ).datagramSender()
      } catch {
        Self.count.subtract(1, ordering: .relaxed)
        throw error
      }
    }

    deinit { Self.count.subtract(1, ordering: .relaxed) }

    /// Whether messages have to go as files.
    var isObserved: Bool { MailboxObservation.exists(at: observer) }

    /// - Throws: `.wouldBlock` if the receiver has fallen behind, else why there is none.
    func send(_ message: Message) throws(Errno) { try socket.sendDatagram(message.datagram) }
  }
}

/// Posts into a mailbox in a directory: small messages over the wire, others as files, in one order.
final class DirectoryMailboxWriter: MailboxWriter {
  private struct State {
    /// The order of the last entry.
    var last: UInt64 = 0
    /// The order of the last one that was stored as a file.
    var lastFile: UInt64 = 0
    var admission: Admission
    var wire: MailboxWire.Outlet?
    /// The boot time from which the wire may be tried.
    var wireTime: UInt64 = 0

    mutating func nextOrder(now: UInt64) -> UInt64 {
      last = EntryFile.order(after: last, now: now)
      return last
    }
  }

  private let place: MailboxDirectory
  private let nonce = Nonce.nextNumber()
  private let sender: String
  private let state: Mutex<State>

  var path: String { place.path }

  init(_ place: MailboxDirectory, _ admission: Admission) {
    self.place = place
    sender = Nonce.text(nonce)
    state = Mutex(State(admission: admission))
  }

  func post(_ bytes: [UInt8], until deadline: ContinuousClock.Instant?) throws -> PostOutcome {
    do {
      let handle = try place.root.handle()
      return try withExtendedLifetime(handle) {
        let container = handle.descriptor.rawValue
        if isSent(bytes, in: handle) { return .posted }
        guard try admits(bytes.count, at: container) else { return .full }
        try store(bytes, at: container)
        return .posted
      }
    } catch let error as Errno where error == .noSuchFile {
      return .gone
    }
  }

  /// How long messages go as files after the receiver fell behind, in nanoseconds.
  private static let pause: UInt64 = 2_000_000
  /// The same after there was no socket, or no process behind it.
  private static let longPause: UInt64 = 1_000_000_000

  /// Sends a small message over the wire.
  ///
  /// - Returns: False if it has to go as a file, whatever the reason.
  private func isSent(_ bytes: [UInt8], in container: ContainerRoot.Handle) -> Bool {
    guard bytes.count <= MailboxWire.maximumBytes else { return false }
    let now = bootTimeNanoseconds()
    let (mayTry, known) = state.withLock { (now >= $0.wireTime, $0.wire) }
    guard mayTry else { return false }
    do throws(Errno) {
      let wire: MailboxWire.Outlet
      if let known {
        wire = known
      } else {
        wire = try MailboxWire.Outlet(to: place.relativePath, in: container)
        state.withLock { $0.wire = wire }
      }
      guard !wire.isObserved else { return false }
      let message = state.withLock { state in
        MailboxWire.Message(
          sender: nonce, order: state.nextOrder(now: now), fileBefore: state.lastFile,
          content: bytes)
      }
      try wire.send(message)
      return true
    } catch {
      let isBehind = error == .wouldBlock
      state.withLock { state in
        state.wireTime = now + (isBehind ? Self.pause : Self.longPause)
        if !isBehind { state.wire = nil }
      }
      return false
    }
  }

  private func store(_ bytes: [UInt8], at container: Int32) throws(Errno) {
    let staging = place.relativePath + "/" + MailboxDirectory.stagedPrefix
    try place.root.store(bytes, staging: staging, at: container) { staged, _ throws(Errno) in
      let entry = state.withLock { state in
        EntryFile(
          order: state.nextOrder(now: bootTimeNanoseconds()), sender: sender, count: 1,
          bytes: bytes.count)
      }
      try rename(staged, at: container, to: place.relativePath + "/" + entry.text, at: container)
      state.withLock { state in
        state.lastFile = max(state.lastFile, entry.order)
        state.admission.noteStored(entry)
      }
    }
  }

  private func admits(_ size: Int, at container: Int32) throws(Errno) -> Bool {
    if state.withLock({ $0.admission.allows(1, size) }) { return true }
    let waiting = try ContainerRoot.entries(place.relativePath, at: container)?
      .compactMap { EntryFile(bytes: $0.name.bytes) }
    return state.withLock { $0.admission.note(waiting: waiting ?? [], for: 1, size) }
  }
}

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

/// While a process observes a container's mailboxes, all messages go as files, so that it can see
/// them. It shows that by a Unix socket in the abstract namespace, which changes nothing in the
/// container and ends with its process.
package final class MailboxObservation: Sendable {
  private let socket: FileDescriptor
  /// Connected again and again, which costs one call. Without it no message is seen.
  private static let probe = try? FileDescriptor.datagramSocket()

  /// - Returns: Nil if another process observes already, or there is no container: try again later.
  package init?(of root: ContainerRoot) {
    do {
      socket = try .datagramSocket(receivingAt: Self.address(root.handle()))
    } catch {
      return nil
    }
  }

  fileprivate static func address(_ container: ContainerRoot.Handle) -> String {
    "@wormhole-observer-\(container.status.device)-\(container.status.inode)"
  }

  fileprivate static func exists(at address: String) -> Bool {
    // It fails if there is none; and without a probe there is no look.
    (try? probe?.connect(to: address)) != nil
  }
}
