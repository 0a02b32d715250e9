import WormholePropertyLists
import WormholeSystem

/// The record of a publication, in the same file and written by the same call: its publisher, the
/// publication before, and its expiry.
///
/// It is the annotation of a binary property list (see `BinaryPropertyListAnnotation`), so the file
/// still holds exactly the user's property list for every program. A file without a record, or with
/// a malformed one, was written by a foreign program and names no publisher.
///
/// ```
/// 1 byte    the version of this layout: 1, or 2 if blocks of the content are zeros
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
  /// The publication before an unbroken run of publications by one process. From it an observer
  /// that has missed some publications learns whether one process made them all.
  package enum Base: Hashable, Sendable {
    case nothing
    case stamp(seconds: Int64, nanoseconds: Int64)
    /// The publisher did not look.
    case unknown
  }

  /// The record as stored in the file; its fields are read on demand.
  package private(set) var bytes: [UInt8]

  package static let maximumProgramBytes = 64
  package static let maximumPeerBytes = 100

  private enum Field {
    static let process = 1
    static let time = 5
    static let expiry = 13
    static let baseSeconds = 21
    static let baseNanoseconds = 29
    static let program = 33
  }

  private static let version: UInt8 = 1
  private static let versionWithEmptyBlocks: UInt8 = 2

  /// Creates the record of a publication that this process makes now.
  ///
  /// - Parameter processID: Its number, if the caller knows it.
  package init(
    processID: Int32 = ProcessIdentity.current.processID, peer: String?, base: Base, expiry: Int64?
  ) {
    self.init(
      processID, at: Self.now, base: base, expiry: expiry,
      texts: peer == nil ? Self.ownTexts : Self.texts(Self.ownProgram, peer))
  }

  package init(_ publisher: Publisher, base: Base, expiry: Int64?) {
    self.init(
      publisher.processID, at: publisher.nanosecondsSince1970, base: base, expiry: expiry,
      texts: Self.texts(
        Self.field(publisher.program, maximumBytes: Self.maximumProgramBytes), publisher.peer))
  }

  /// - Parameter texts: The program and the peer, as they are stored.
  private init(
    _ processID: Int32, at time: Int64, base: Base, expiry: Int64?, texts: [UInt8]
  ) {
    let (seconds, nanoseconds): (Int64, Int32) =
      switch base {
      case .unknown: (0, -1)
      case .nothing: (0, -2)
      case .stamp(let seconds, let nanoseconds): (seconds, Int32(truncatingIfNeeded: nanoseconds))
      }
    var record = ByteBuffer(capacity: Field.program + texts.count)
    record.append(Self.version)
    record.append(bigEndian: UInt32(bitPattern: processID))
    record.append(bigEndian: UInt64(bitPattern: time))
    record.append(bigEndian: UInt64(bitPattern: expiry ?? 0))
    record.append(bigEndian: UInt64(bitPattern: seconds))
    record.append(bigEndian: UInt32(bitPattern: nanoseconds))
    record.append(texts)
    bytes = record.bytes
  }

  private static func texts(_ program: [UInt8], _ peer: String?) -> [UInt8] {
    program + (peer.map { field($0, maximumBytes: maximumPeerBytes) } ?? [0])
  }

  private static let ownTexts = texts(ownProgram, nil)
  private static let ownProgram = field(ProcessIdentity.program, maximumBytes: maximumProgramBytes)

  /// Returns a text with its length, cut between two characters if it is too long.
  private static func field(_ text: String, maximumBytes: Int) -> [UInt8] {
    var text = text[...]
    while text.utf8.count > maximumBytes { text.removeLast() }
    return [UInt8(text.utf8.count)] + text.utf8
  }

  /// Reads bytes of any origin; nil if they are not a record.
  package init?(_ bytes: [UInt8]) {
    guard bytes.count >= Field.program + 2,
      (Self.version...Self.versionWithEmptyBlocks).contains(bytes[0])
    else { return nil }
    self.bytes = bytes
    guard number(at: Field.process, as: Int32.self) > 0,
      number(at: Field.expiry, as: Int64.self) >= 0,
      (-2..<1_000_000_000).contains(number(at: Field.baseNanoseconds, as: Int32.self)),
      bytes[Field.program] <= Self.maximumProgramBytes, peerField < bytes.count,
      bytes[peerField] <= Self.maximumPeerBytes,
      bytes.count == peerField + 1 + Int(bytes[peerField]),
      bytes[Field.program...].allSatisfy({ $0 < 0x80 }) || areTextsValid
    else { return nil }
  }

  // MARK: Fields

  package var publisher: Publisher {
    Publisher(
      processID: number(at: Field.process, as: Int32.self), program: text(at: Field.program) ?? "",
      peer: bytes[peerField] == 0 ? nil : text(at: peerField),
      nanosecondsSince1970: number(at: Field.time, as: Int64.self))
  }

  package var base: Base {
    switch number(at: Field.baseNanoseconds, as: Int32.self) {
    case -1: .unknown
    case -2: .nothing
    case let nanoseconds:
      .stamp(
        seconds: number(at: Field.baseSeconds, as: Int64.self), nanoseconds: Int64(nanoseconds))
    }
  }

  /// Whether blocks of the content are zeros, which were not lost.
  var hasEmptyBlocks: Bool { bytes[0] == Self.versionWithEmptyBlocks }

  mutating func noteEmptyBlocks() { bytes[0] = Self.versionWithEmptyBlocks }

  /// Continues the run of publications that another record belongs to.
  package mutating func takeBase(of other: PublicationRecord) {
    for offset in Field.baseSeconds..<Field.program { bytes[offset] = other.bytes[offset] }
  }

  /// The moment from which the content counts as never written, in nanoseconds since 1970.
  package var expiry: Int64? {
    let expiry = number(at: Field.expiry, as: Int64.self)
    return expiry == 0 ? nil : expiry
  }

  /// Returns whether the same process made both publications.
  package func isOfSameProcess(as other: PublicationRecord) -> Bool {
    number(at: Field.process, as: Int32.self) == other.number(at: Field.process, as: Int32.self)
      && bytes[Field.program...] == other.bytes[Field.program...]
  }

  private var peerField: Int { Field.program + 1 + Int(bytes[Field.program]) }

  private var areTextsValid: Bool { text(at: Field.program) != nil && text(at: peerField) != nil }

  private func text(at offset: Int) -> String? {
    String(validating: bytes[(offset + 1)..<(offset + 1 + Int(bytes[offset]))], as: UTF8.self)
  }

  private func number<Number: FixedWidthInteger>(at offset: Int, as: Number.Type) -> Number {
    bytes.withUnsafeBytes {
      Number(bigEndian: $0.loadUnaligned(fromByteOffset: offset, as: Number.self))
    }
  }

  // MARK: Time

  /// The time of day in nanoseconds since 1970; at most the year 2262, and less than the largest number, so
  /// that an expiry that does not fit never passes.
  package static var now: Int64 {
    min(Int64(clamping: realTime().nanosecondsSince1970), .max - 1)
  }

  /// Returns how long it is until a moment of a record; negative if it has passed.
  package static func time(until expiry: Int64) -> Duration {
    .nanoseconds(expiry) - .nanoseconds(now)
  }

  /// Returns the moment after a duration from now, in nanoseconds since 1970; at most the year 2262.
  package static func expiry(after duration: Duration) -> Int64 {
    let nanoseconds = min(max(duration / .nanoseconds(1), 0), 9e18)
    let (sum, overflow) = now.addingReportingOverflow(Int64(nanoseconds))
    return overflow ? .max : sum
  }

  /// Whether the content counts as never written by now.
  package var hasExpired: Bool { expiry.map { $0 <= Self.now } ?? false }
}

extension [UInt8] {
  /// Appends the bytes of a number, most significant byte first.
  package mutating func append(number: some FixedWidthInteger) {
    Swift.withUnsafeBytes(of: number.bigEndian) { append(contentsOf: $0) }
  }
}
