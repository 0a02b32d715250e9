/// The parts of a text such as `etcds://user:password@host1:2379,host2/prefix?ca=ca.pem`, without
/// escapes. A list of hosts is not part of a URL (RFC 3986), so Foundation's `URL` does not work
/// here.
package struct EtcdAddress: Sendable {
  /// "https://host1:2379" for each host.
  package private(set) var endpoints: [String] = []
  package private(set) var user: String?
  package private(set) var password: String?
  /// Without a slash at its ends; never empty.
  package private(set) var prefix = ""
  package private(set) var parameters: [(name: String, value: String)] = []

  /// The reason why a text is not an address, without the text itself.
  package struct Invalid: Error { package let reason: String }

  private static let standardPort = 2379

  /// Whether a text names a place on etcd, not a directory.
  package static func isMeant(by text: String) -> Bool {
    ["etcd://", "etcds://"].contains { text.prefix($0.count).lowercased() == $0 }
  }

  package init(_ text: String) throws(Invalid) {
    guard Self.isMeant(by: text) else {
      throw Invalid(reason: "it does not begin with etcd:// or etcds://")
    }
    let scheme = text.prefix(5).lowercased() == "etcds" ? "https" : "http"
    let rest = text.drop { $0 != ":" }.dropFirst(3)
    let parts = rest.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
    let place = parts[0].split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
    // The last `@`: a password may contain others.
    let at = place[0].lastIndex(of: "@")
    let hosts = place[0][(at.map { place[0].index(after: $0) } ?? place[0].startIndex)...]
      .split(separator: ",", omittingEmptySubsequences: false)
    // A slash or a question mark that belongs to a password ended the hosts too early.
    guard hosts.allSatisfy(Self.isHost), place.count < 2 || !place[1].contains("@") else {
      let hint =
        "; in a user's name or password / is written %2F, ? is %3F and @ is %40, as in a prefix"
      throw Invalid(
        reason: "a host is missing, or is no host" + (text.contains("@") ? hint : ""))
    }
    endpoints = hosts.map { host in
      let hasPort = host.hasPrefix("[") ? host.contains("]:") : host.contains(":")
      return "\(scheme)://\(host)\(hasPort ? "" : ":\(Self.standardPort)")"
    }
    var path = place.count > 1 ? place[1] : ""
    while path.hasSuffix("/") { path.removeLast() }
    guard let prefix = Self.unescaped(path), !prefix.isEmpty else {
      throw Invalid(reason: "it names no prefix after the hosts")
    }
    self.prefix = prefix
    try at.map { at throws(Invalid) in try take(userInfo: place[0][..<at]) }
    for parameter in parts.count > 1 ? parts[1].split(separator: "&") : [] {
      let fields = parameter.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      guard fields.count == 2, let value = Self.unescaped(fields[1]) else {
        throw Invalid(reason: "a parameter has no value, or a % without two digits")
      }
      parameters.append((String(fields[0]), value))
    }
  }

  private mutating func take(userInfo: Substring) throws(Invalid) {
    let fields = userInfo.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
    guard let user = Self.unescaped(fields[0]), !user.isEmpty else {
      throw Invalid(reason: "the user's name is empty")
    }
    self.user = user
    guard fields.count > 1 else { return }
    guard let password = Self.unescaped(fields[1]) else {
      throw Invalid(reason: "the password has a % without two digits; % itself is written %25")
    }
    self.password = password.isEmpty ? nil : password
  }

  private static func isHost(_ text: Substring) -> Bool {
    guard !text.isEmpty, text.utf8.allSatisfy(isOfHost) else { return false }
    // An address of IPv6 is in brackets.
    let rest = text.hasPrefix("[") ? text.drop { $0 != "]" } : text
    let parts = rest.split(separator: ":", omittingEmptySubsequences: false)
    return parts.count == 1 || parts.count == 2 && UInt16(parts[1]) ?? 0 > 0
  }

  private static func isOfHost(_ byte: UInt8) -> Bool {
    let character = Character(UnicodeScalar(byte))
    return character.isASCII
      && (character.isLetter || character.isNumber || ".-_:[]".contains(character))
  }

  private static func unescaped(_ text: Substring) -> String? {
    var bytes: [UInt8] = []
    var rest = text.utf8
    while let byte = rest.popFirst() {
      guard byte == UInt8(ascii: "%") else {
        bytes.append(byte)
        continue
      }
      guard let digits = String(rest.prefix(2)), digits.utf8.count == 2,
        let escaped = UInt8(digits, radix: 16)
      else { return nil }
      bytes.append(escaped)
      rest = rest.dropFirst(2)
    }
    return String(validating: bytes, as: UTF8.self)
  }
}
