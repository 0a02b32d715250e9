import FoundationEssentials
import WormholePropertyLists

/// What a certificate in PEM tells people: its end, and its subject's common name.
///
/// It reads only the fields of RFC 5280 on the way there; libcurl verifies certificates.
struct CertificateText: Equatable {
  let end: Date
  /// Nil if the subject has none.
  let commonName: String?

  private static let commonNameObject: [UInt8] = [0x55, 0x04, 0x03]

  /// - Parameter pem: One certificate, or the first of several.
  /// - Returns: Nil for anything else.
  init?(pem: String) {
    let lines = pem.split(whereSeparator: \.isNewline).map { $0.filter { !$0.isWhitespace } }
    guard let first = lines.firstIndex(of: "-----BEGINCERTIFICATE-----") else { return nil }
    let text = lines[(first + 1)...].prefix { !$0.hasPrefix("-----") }.joined()
    guard let data = Data(base64Encoded: text) else { return nil }
    var whole = Fields(Array(data)[...])
    guard var certificate = whole.next(0x30), var body = certificate.next(0x30) else { return nil }
    // The version; then the number, the algorithm and the issuer.
    _ = body.next(0xA0)
    guard body.next(0x02) != nil, body.next(0x30) != nil, body.next(0x30) != nil,
      var validity = body.next(0x30), validity.any() != nil, let end = validity.time(),
      var subject = body.next(0x30)
    else { return nil }
    self.end = end
    var name: String?
    while var set = subject.next(0x31) {
      guard var pair = set.next(0x30), let object = pair.next(0x06) else { continue }
      if Array(object.bytes) == Self.commonNameObject, let value = pair.any() {
        name = String(decoding: value.bytes, as: UTF8.self)
      }
    }
    commonName = name
  }

  /// The fields of a structure in DER: a tag, a length, and that many bytes.
  private struct Fields {
    private(set) var bytes: ArraySlice<UInt8>

    init(_ bytes: ArraySlice<UInt8>) { self.bytes = bytes }

    /// Takes the next field if it has a tag.
    mutating func next(_ tag: UInt8) -> Fields? { bytes.first == tag ? any() : nil }

    /// Takes the next field; nil at the end, and if it is longer than what is left.
    mutating func any() -> Fields? {
      var rest = bytes.dropFirst()
      guard !bytes.isEmpty, let length = rest.popFirst() else { return nil }
      var count = Int(length)
      if length & 0x80 != 0 {
        let digits = Int(length & 0x7F)
        guard (1...4).contains(digits), digits <= rest.count else { return nil }
        count = rest.prefix(digits).reduce(0) { $0 << 8 | Int($1) }
        rest = rest.dropFirst(digits)
      }
      guard count <= rest.count else { return nil }
      defer { bytes = rest.dropFirst(count) }
      return Fields(rest.prefix(count))
    }

    /// Takes a time: YYMMDDHHMMSSZ for the years 1950 to 2049, or YYYYMMDDHHMMSSZ.
    mutating func time() -> Date? {
      let isShort = bytes.first == 0x17
      guard let field = isShort ? next(0x17) : next(0x18) else { return nil }
      guard field.bytes.last == UInt8(ascii: "Z"),
        field.bytes.dropLast().allSatisfy({ (0x30...0x39).contains($0) })
      else { return nil }
      let text = String(decoding: field.bytes.dropLast(), as: UTF8.self)
      let digits = Array(isShort ? (text < "5" ? "20" : "19") + text : text)
      guard digits.count == 14 else { return nil }
      func part(_ range: Range<Int>) -> String { String(digits[range]) }
      let spelled =
        "\(part(0..<4))-\(part(4..<6))-\(part(6..<8))T\(part(8..<10)):\(part(10..<12)):\(part(12..<14))"
      return CalendarTime(text: spelled.utf8)?.secondsSinceReferenceDate
        .map { Date(timeIntervalSinceReferenceDate: TimeInterval($0)) }
    }
  }
}
