import SystemCalls

/// What a publication tells about itself, in the same file and written by the same call: its
/// publisher, the publication before, and its expiry.
///
/// It is the annotation of a binary property list (see `BinaryPropertyListAnnotation`), so the file
/// still holds exactly the user's property list for every program. A file without a record, or with
/// one that is malformed in any way, was written by a foreign program: nothing is told.
///
/// ```
/// 1 byte    the version of this layout: 1
/// 4 bytes   the number of the process
/// 8 bytes   the time of publication in nanoseconds since 1970
/// 8 bytes   the expiry, likewise; 0 for none
/// 12 bytes  what was there before the publisher's run of publications: the seconds and nanoseconds
///           of a stamp
/// 1 + n     the length and the text of the program's name, in UTF-8
/// 1 + n     the same of the peer's name; empty for none
/// ```
/// All numbers have their most significant byte first.
package struct PublicationRecord: Hashable, Sendable {
  /// The publication that was there before an unbroken run of publications by one process. With it
  /// an observer that has missed some publications knows whether one process made them all.
  package enum Base: Hashable, Sendable {
    case nothing
    case stamp(seconds: Int64, nanoseconds: Int64)
    /// The publisher did not look.
    case unknown
  }

  package let publisher: Publisher
  package let base: Base
  /// The moment from which the content counts as never written, in nanoseconds since 1970.
  package let expiry: Int64?

  package static let maximumProgramBytes = 64
  package static let maximumPeerBytes = 100
  private static let version: UInt8 = 1

  /// Creates the record of a publication that this process makes now.
  package init(peer: String?, base: Base, expiry: Int64?) {
    self.init(
      Publisher(
        processID: ProcessIdentity.current.processID, program: ProcessIdentity.program, peer: peer,
        nanosecondsSince1970: Self.now),
      base: base, expiry: expiry)
  }

  package init(_ publisher: Publisher, base: Base, expiry: Int64?) {
    self.publisher = publisher
    self.base = base
    self.expiry = expiry
  }

  /// The time of day in nanoseconds since 1970.
  package static var now: Int64 {
    let (seconds, nanoseconds) = realTime()
    return seconds * 1_000_000_000 + nanoseconds
  }

  /// Returns the moment after a duration from now, in nanoseconds since 1970; at most the year 2262.
  package static func expiry(after duration: Duration) -> Int64 {
    let nanoseconds = min(max(duration / .nanoseconds(1), 0), 9e18)
    let (sum, overflow) = now.addingReportingOverflow(Int64(nanoseconds))
    return overflow ? .max : sum
  }

  /// Whether the content counts as never written by now.
  package var hasExpired: Bool { expiry.map { $0 <= Self.now } ?? false }

  // MARK: Bytes

  package func bytes() -> [UInt8] {
    var bytes: [UInt8] = [Self.version]
    bytes.reserveCapacity(64)
    bytes.append(Int64(publisher.processID), width: 4)
    bytes.append(publisher.nanosecondsSince1970, width: 8)
    bytes.append(expiry ?? 0, width: 8)
    let (seconds, nanoseconds): (Int64, Int64) =
      switch base {
      case .unknown: (0, -1)
      case .nothing: (0, -2)
      case .stamp(let seconds, let nanoseconds): (seconds, nanoseconds)
      }
    bytes.append(seconds, width: 8)
    bytes.append(nanoseconds, width: 4)
    bytes.append(publisher.program, maximumBytes: Self.maximumProgramBytes)
    bytes.append(publisher.peer ?? "", maximumBytes: Self.maximumPeerBytes)
    return bytes
  }

  /// Reads bytes of any origin; nil if they are not a record.
  package init?(_ bytes: [UInt8]) {
    var rest = bytes[...]
    guard rest.popFirst() == Self.version,
      let process = rest.popNumber(width: 4), let processID = Int32(exactly: process),
      processID > 0,
      let date = rest.popNumber(width: 8), let expiry = rest.popNumber(width: 8), expiry >= 0,
      let seconds = rest.popNumber(width: 8),
      let nanoseconds = rest.popNumber(width: 4), (-2..<1_000_000_000).contains(nanoseconds),
      let program = rest.popText(maximumBytes: Self.maximumProgramBytes),
      let peer = rest.popText(maximumBytes: Self.maximumPeerBytes), rest.isEmpty
    else { return nil }
    publisher = Publisher(
      processID: processID, program: program, peer: peer.isEmpty ? nil : peer,
      nanosecondsSince1970: date)
    self.expiry = expiry == 0 ? nil : expiry
    base =
      switch nanoseconds {
      case -1: .unknown
      case -2: .nothing
      default: .stamp(seconds: seconds, nanoseconds: nanoseconds)
      }
  }
}

extension [UInt8] {
  fileprivate mutating func append(_ number: Int64, width: Int) {
    for byte in 1...width { append(UInt8(truncatingIfNeeded: number >> (8 * (width - byte)))) }
  }

  /// Appends a text with its length, cut between two characters if it is too long.
  fileprivate mutating func append(_ text: String, maximumBytes: Int) {
    var text = text[...]
    while text.utf8.count > maximumBytes { text.removeLast() }
    append(UInt8(text.utf8.count))
    append(contentsOf: text.utf8)
  }
}

extension ArraySlice<UInt8> {
  fileprivate mutating func popNumber(width: Int) -> Int64? {
    guard count >= width else { return nil }
    let bits = prefix(width).reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
    removeFirst(width)
    let unused = 64 - 8 * width
    return Int64(bitPattern: bits << unused) >> unused
  }

  fileprivate mutating func popText(maximumBytes: Int) -> String? {
    guard let length = popFirst(), length <= maximumBytes, count >= length else { return nil }
    let bytes = prefix(Int(length))
    removeFirst(Int(length))
    return String(validating: bytes, as: UTF8.self)
  }
}
