package import WormholeSystem

/// The holder, the beginning and the term of a lease: the name of the entry that every holder
/// creates in the lease's directory, so that the declaration needs no extra write.
///
/// `x-<pid>-<start ticks>-<namespace>-<boot time ms>-<term ms>-<nonce>`, the numbers in hex. The entry
/// receives the content to publish.
package struct LeaseDeclaration: Hashable, Sendable {
  package let identity: ProcessIdentity
  /// The time of taking the lease in milliseconds, on the clock that all processes of this machine share.
  package let since: UInt64
  package let term: Duration
  package let name: String

  /// The term of a change that names no other.
  package static let standardTerm: Duration = .seconds(2)

  /// The term of a holder that keeps the lease for as long as it runs.
  package static let whileRunning: Duration = .milliseconds(Int64.max)

  /// The limit of any declared term, whatever its origin, unless the holder is seen to run with the
  /// lease: any process that may create an entry can declare another process, and any term.
  package static let longestUnseenTerm: Duration = .seconds(3_600)

  /// Creates the declaration of this process, which takes the lease now.
  package init(term: Duration) {
    self.init(
      identity: .current, since: bootTimeNanoseconds() / 1_000_000,
      term: min(max(term, .zero), Self.whileRunning), nonce: Nonce.nextNumber())
  }

  private init(
    identity: ProcessIdentity, since: UInt64, term: Duration, nonce: UInt64
  ) {
    self.identity = identity
    self.since = since
    self.term = term
    let milliseconds: UInt64
    if term == Self.standardTerm {
      milliseconds = 2_000
    } else {
      let (seconds, attoseconds) = term.components
      milliseconds = UInt64(seconds * 1_000 + attoseconds / 1_000_000_000_000_000)
    }
    let process = identity == Self.own.identity ? Self.own.name : Self.name(of: identity)
    name = NameWriter.text(capacity: 1 + 6 * (1 + NameWriter.hexDigits)) { writer in
      writer.append(Self.mark)
      writer.append(process)
      writer.append(dashed: since)
      writer.append(dashed: milliseconds)
      writer.append(dashed: nonce)
    }
  }

  private static let mark = UInt8(ascii: "x")

  /// The part of the name that is the same for all leases of this process.
  private static let own = {
    let identity = ProcessIdentity.current
    return (identity: identity, name: name(of: identity))
  }()

  private static func name(of identity: ProcessIdentity) -> String {
    NameWriter.text(capacity: 3 * (1 + NameWriter.hexDigits)) { writer in
      writer.append(dashed: UInt64(UInt32(bitPattern: identity.processID)))
      writer.append(dashed: identity.startTicks)
      writer.append(dashed: identity.namespace)
    }
  }

  /// Returns the same lease, held by another process from now on.
  package func held(by identity: ProcessIdentity) -> LeaseDeclaration {
    LeaseDeclaration(
      identity: identity, since: since, term: term,
      nonce: name.split(separator: "-").last.flatMap { UInt64($0, radix: 16) } ?? 0)
  }

  /// Returns the same lease under another name: a sign of life for processes that cannot see it.
  package func renewed() -> LeaseDeclaration {
    LeaseDeclaration(identity: identity, since: since, term: term, nonce: Nonce.nextNumber())
  }

  /// Whether the lease was held for its whole term when another declaration began.
  package func isPastItsTerm(at later: LeaseDeclaration) -> Bool {
    .milliseconds(Int64(clamping: later.since) - Int64(clamping: since)) >= term
  }

  /// The name of an entry that also says how its holder uses the lease.
  package func name(marked mark: String) -> String { mark + name.dropFirst() }

  /// Reads an entry's name; nil if it is not a declaration.
  package init?(_ entry: FileName) {
    guard let (mark, declaration) = Self.marked(entry), mark == "x" else { return nil }
    self = declaration
  }

  /// Reads the name of an entry with any mark; see `name(marked:)`.
  package static func marked(
    _ entry: FileName
  ) -> (mark: String, declaration: LeaseDeclaration)? {
    let fields = entry.bytes.split(separator: UInt8(ascii: "-"), omittingEmptySubsequences: false)
    guard fields.count == 7, !fields[0].isEmpty else { return nil }
    let mark = String(decoding: fields[0], as: UTF8.self)
    return LeaseDeclaration(fields, name: "x" + entry.text.dropFirst(mark.count)).map { (mark, $0) }
  }

  private init?(_ fields: [ArraySlice<UInt8>], name: String) {
    let numbers = fields[1...5].map { UInt64(String(decoding: $0, as: UTF8.self), radix: 16) }
    guard let processID = numbers[0].flatMap({ Int32(exactly: $0) }), let start = numbers[1],
      let namespace = numbers[2], let since = numbers[3], let term = numbers[4]
    else { return nil }
    identity = ProcessIdentity(processID: processID, startTicks: start, namespace: namespace)
    self.since = since
    self.term = .milliseconds(Int64(clamping: term))
    self.name = name
  }

  /// The time for which the lease has been held, if the entry alone determines it.
  ///
  /// Nil for an entry of a process in another namespace, possibly on another machine, because the
  /// clocks may differ. Nil, too, for a beginning in the future.
  package var age: Duration? {
    let now = bootTimeNanoseconds() / 1_000_000
    guard identity.isVisible, since <= now else { return nil }
    return .milliseconds(Int64(min(now - since, UInt64(Int64.max))))
  }
}

extension NameWriter {
  fileprivate mutating func append(dashed number: UInt64) {
    append(UInt8(ascii: "-"))
    append(hex: number)
  }
}
