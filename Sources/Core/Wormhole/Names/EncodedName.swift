/// The directory name of an identifier, and back.
///
/// Any string becomes one safe path component, byte for byte. Identifiers with different UTF-8
/// bytes never share a name, so composed and decomposed "é" are two names. Letters, digits and
/// `-_.@+=,` stand for themselves (a leading dot does not), every other byte is `%` and two hex
/// digits, and the empty string is `%`. A name that would exceed 255 bytes (`NAME_MAX`) becomes its
/// beginning, `%.` and the SHA-256 of the identifier. The directory of such a name holds the whole
/// identifier in a file named `identifier`. With this file a reader recovers the identifier, and a
/// collision is detected.
package struct EncodedName: Hashable, Sendable {
  /// One path component, ASCII only.
  package let component: String
  /// The identifier, if the name needs a file `identifier` beside it.
  package let longIdentifier: String?

  static let maximumBytes = 255
  private static let digestMark = "%."
  private static let hex = Array("0123456789ABCDEF".utf8)

  package init(_ identifier: String) {
    let bytes = Self.key(identifier)
    if bytes.count <= Self.maximumBytes {
      component = String(decoding: bytes, as: UTF8.self)
      longIdentifier = nil
    } else {
      // A beginning for people. It may be cut within an escape, because it is never decoded.
      let digest = SHA256.hexDigest(of: Array(identifier.utf8))
      component = String(decoding: bytes.prefix(128), as: UTF8.self) + Self.digestMark + digest
      longIdentifier = identifier
    }
  }

  /// Returns the same for a key of any length.
  package static func key(_ identifier: String) -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(identifier.utf8.count + 8)
    for byte in identifier.utf8 {
      if Self.isPlain(byte), !(bytes.isEmpty && byte == UInt8(ascii: ".")) {
        bytes.append(byte)
      } else {
        bytes.append(UInt8(ascii: "%"))
        bytes.append(Self.hex[Int(byte >> 4)])
        bytes.append(Self.hex[Int(byte & 15)])
      }
    }
    return bytes.isEmpty ? [UInt8(ascii: "%")] : bytes
  }

  /// The same as text.
  package static func text(ofKey identifier: String) -> String {
    String(decoding: key(identifier), as: UTF8.self)
  }

  package enum Decoded: Hashable, Sendable {
    case identifier(String)
    /// The identifier is in the directory's file `identifier`.
    case long
    /// Not the encoding of any identifier; another program created the entry.
    case foreign
  }

  package static func decode(_ name: some Collection<UInt8>) -> Decoded {
    if name.elementsEqual("%".utf8) { return .identifier("") }
    if isLong(name) { return .long }
    guard let identifier = identifier(ofKey: name), name.count <= maximumBytes else {
      return .foreign
    }
    return .identifier(identifier)
  }

  /// Returns the text that `key` encoded; nil if it did not encode any.
  package static func identifier(ofKey name: some Collection<UInt8>) -> String? {
    if name.elementsEqual("%".utf8) { return "" }
    // Only the canonical form of a name counts, because two names would otherwise mean one
    // identifier.
    guard let identifier = unescaped(name), key(identifier).elementsEqual(name) else { return nil }
    return identifier
  }

  /// Returns a text with a byte for each "%" and its two hex digits; nil if they are not digits, or the
  /// text is not UTF-8.
  package static func unescaped(_ text: some Collection<UInt8>) -> String? {
    var bytes: [UInt8] = []
    var rest = text[...]
    while let byte = rest.popFirst() {
      guard byte == UInt8(ascii: "%") else {
        bytes.append(byte)
        continue
      }
      guard let high = rest.popFirst().flatMap(value), let low = rest.popFirst().flatMap(value)
      else { return nil }
      bytes.append(high << 4 | low)
    }
    return String(validating: bytes, as: UTF8.self)
  }

  // No other name contains this mark, because everywhere else two digits follow a "%".
  private static func isLong(_ name: some Collection<UInt8>) -> Bool {
    let end = name.suffix(digestMark.utf8.count + 64)
    return end.starts(with: digestMark.utf8)
      && end.dropFirst(digestMark.utf8.count).count == 64
      && end.dropFirst(digestMark.utf8.count).allSatisfy(Nonce.isDigit)
  }

  private static func value(_ digit: UInt8) -> UInt8? {
    Character(UnicodeScalar(digit)).hexDigitValue.map { UInt8($0) }
  }

  private static func isPlain(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"):
      true
    case UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "."), UInt8(ascii: "@"),
      UInt8(ascii: "+"), UInt8(ascii: "="), UInt8(ascii: ","):
      true
    default: false
    }
  }
}
