package import SystemCalls

/// Who holds a lease, since when and for how long at most: the name of the entry that every holder
/// makes in the lease's directory, so that saying so costs no extra write.
///
/// `<x|s>-<pid>-<start ticks>-<namespace>-<boot time ms>-<term ms>-<nonce>`, the numbers in hex; x is
/// exclusive and its entry holds what will be published, s is shared and its entry is empty.
package struct LeaseDeclaration: Hashable, Sendable {
  package let mode: LockMode
  package let identity: ProcessIdentity
  /// When the lease was taken, on the clock that all processes of this machine share.
  let since: UInt64
  package let term: Duration
  package let name: String

  /// No term that a directory entry claims counts for more than this, whoever wrote it.
  package static let longestTerm: Duration = .seconds(3_600)

  /// This process takes the lease now.
  package init(mode: LockMode, term: Duration) {
    self.init(
      mode: mode, identity: .current, since: bootTimeNanoseconds() / 1_000_000,
      term: min(max(term, .zero), Self.longestTerm), nonce: Nonce.next())
  }

  private init(
    mode: LockMode, identity: ProcessIdentity, since: UInt64, term: Duration, nonce: String
  ) {
    self.mode = mode
    self.identity = identity
    self.since = since
    self.term = term
    let (seconds, attoseconds) = term.components
    let milliseconds = UInt64(seconds * 1_000 + attoseconds / 1_000_000_000_000_000)
    var name = mode == .exclusive ? "x-" : "s-"
    name.reserveCapacity(80)
    name += identity == Self.own.identity ? Self.own.prefix : Self.prefix(identity)
    name += String(since, radix: 16)
    name += "-"
    name += String(milliseconds, radix: 16)
    name += "-"
    name += nonce
    self.name = name
  }

  /// The same lease, from now on held by another process.
  package func held(by identity: ProcessIdentity) -> LeaseDeclaration {
    LeaseDeclaration(
      mode: mode, identity: identity, since: since, term: term,
      nonce: name.split(separator: "-").last.map(String.init) ?? "")
  }

  /// The part that stays the same; a forked child finds that it is another process.
  private static let own = (identity: ProcessIdentity.current, prefix: prefix(.current))

  private static func prefix(_ identity: ProcessIdentity) -> String {
    String(identity.processID, radix: 16) + "-" + String(identity.startTicks, radix: 16)
      + "-" + String(identity.namespace, radix: 16) + "-"
  }

  /// Reads an entry's name; nil when it declares nothing.
  package init?(_ entry: FileName) {
    let fields = entry.bytes.split(separator: UInt8(ascii: "-"), omittingEmptySubsequences: false)
    guard fields.count == 7, fields[0].count == 1 else { return nil }
    let numbers = fields[1...5].map { UInt64(String(decoding: $0, as: UTF8.self), radix: 16) }
    guard let processID = numbers[0].flatMap({ Int32(exactly: $0) }), let start = numbers[1],
      let namespace = numbers[2], let since = numbers[3], let term = numbers[4]
    else { return nil }
    switch fields[0].first {
    case UInt8(ascii: "x"): mode = .exclusive
    case UInt8(ascii: "s"): mode = .shared
    default: return nil
    }
    identity = ProcessIdentity(processID: processID, startTicks: start, namespace: namespace)
    self.since = since
    self.term =
      term > 3_600_000 ? Self.longestTerm : min(.milliseconds(Int64(term)), Self.longestTerm)
    name = entry.text
  }

  /// For how long it has been held, if that can be told from the entry alone.
  ///
  /// Nil for an entry of a process in another namespace, possibly on another machine: the clocks may
  /// differ. Nil, too, for a beginning that lies in the future.
  package var age: Duration? {
    let now = bootTimeNanoseconds() / 1_000_000
    guard identity.isVisible, since <= now else { return nil }
    return .milliseconds(Int64(min(now - since, UInt64(Int64.max))))
  }
}
