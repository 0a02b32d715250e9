import Wormhole

// Text such as `etcds://user:password@host1:2379,host2/prefix?ca=ca.pem`, without escapes. A list of
// hosts is not part of a URL (RFC 3986), so Foundation's `URL` does not work here.
extension EtcdLocation {
  /// The reason why a text is not a location, without the text itself.
  private struct Invalid: Error { let reason: String }

  private static let standardPort = 2379

  /// Parses a text; see `EtcdLocation`.
  ///
  /// - Throws: `WormholeError.notSupported` for any other text.
  public init(_ text: String) throws {
    do throws(Invalid) {
      try self.init(parsing: text)
    } catch {
      throw WormholeError(
        .notSupported, "open the container", path: Engines.withoutPassword(text),
        reason: error.reason,
        remedy: "write etcd://HOST:PORT,HOST:PORT/PREFIX, or etcds:// for TLS")
    }
  }

  private init(parsing text: String) throws(Invalid) {
    let scheme = text.prefix { $0 != ":" }.lowercased()
    guard ["etcd", "etcds"].contains(scheme), text.dropFirst(scheme.count).hasPrefix("://") else {
      throw Invalid(reason: "it does not begin with etcd:// or etcds://")
    }
    let rest = text.dropFirst(scheme.count + 3)
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
        reason: "a host's name is missing or malformed" + (text.contains("@") ? hint : ""))
    }
    let endpoints = hosts.map { host in
      let hasPort = host.hasPrefix("[") ? host.contains("]:") : host.contains(":")
      let port = hasPort ? "" : ":\(Self.standardPort)"
      return "\(scheme == "etcds" ? "https" : "http")://\(host)\(port)"
    }
    var path = place.count > 1 ? place[1] : ""
    while path.hasSuffix("/") { path.removeLast() }
    guard let prefix = EncodedName.unescaped(path.utf8), !prefix.isEmpty else {
      throw Invalid(reason: "it names no prefix after the hosts")
    }
    self.init(endpoints: endpoints, prefix: prefix)
    if let at { try take(userInfo: place[0][..<at]) }
    for parameter in parts.count > 1 ? parts[1].split(separator: "&") : [] {
      try take(parameter: parameter)
    }
    // Otherwise one missing letter would send the password in the clear.
    if scheme == "etcd", [authorities, certificate, key].contains(where: { $0 != nil }) {
      throw Invalid(reason: "ca, cert and key are for TLS, which etcds:// names")
    }
  }

  private mutating func take(userInfo: Substring) throws(Invalid) {
    let fields = userInfo.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
    guard let user = EncodedName.unescaped(fields[0].utf8), !user.isEmpty else {
      throw Invalid(reason: "the user's name is empty")
    }
    self.user = user
    guard fields.count > 1 else { return }
    guard let password = EncodedName.unescaped(fields[1].utf8) else {
      throw Invalid(reason: "the password has a % without two digits; % itself is written %25")
    }
    self.password = password.isEmpty ? nil : Secret(text: password)
  }

  private mutating func take(parameter: Substring) throws(Invalid) {
    let fields = parameter.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
    guard fields.count == 2, let value = EncodedName.unescaped(fields[1].utf8) else {
      throw Invalid(reason: "a parameter has no value, or a % without two digits")
    }
    func number(_ range: ClosedRange<Int64>) throws(Invalid) -> Int64 {
      guard let number = Int64(value), range.contains(number) else {
        let bounds = "\(range.lowerBound) to \(range.upperBound)"
        throw Invalid(reason: "\(fields[0]) is \"\(value)\", and \(bounds) is possible")
      }
      return number
    }
    switch fields[0] {
    case "ca": authorities = value
    case "cert": certificate = value
    case "key": key = value
    case "password-file": passwordFile = value
    case "ttl": lifetime = .seconds(try number(2...60))
    case "files":
      files = value
      // No database has to hold them.
      if fileLimit == Self.standardFileLimit { fileLimit = 4_096 << 20 }
    case "file-limit": fileLimit = try number(1...4_096) << 20
    case let name: throw Invalid(reason: "there is no parameter \"\(name)\"")
    }
  }

  private static func isHost(_ text: Substring) -> Bool {
    guard !text.isEmpty,
      text.allSatisfy({ $0.isASCII && ($0.isLetter || $0.isNumber || ".-_:[]".contains($0)) })
    else { return false }
    // An address of IPv6 is in brackets.
    var rest = text
    if text.hasPrefix("[") {
      guard let end = text.firstIndex(of: "]") else { return false }
      rest = text[end...].dropFirst()
    }
    guard !rest.contains(where: { "[]".contains($0) }) else { return false }
    let parts = rest.split(separator: ":", omittingEmptySubsequences: false)
    return parts.count == 1 || parts.count == 2 && UInt16(parts[1]) ?? 0 > 0
  }

  /// Whether an address belongs to this machine.
  static func isLoopback(_ endpoint: String) -> Bool {
    let host = endpoint.drop { $0 != "/" }.dropFirst(2)
    return ["127.", "localhost:", "[::1]"].contains { host.hasPrefix($0) }
  }
}

extension EtcdLocation: CustomStringConvertible {
  /// The location without parameters and password: "etcds://h1:2379,h2:2379/cinema".
  public var description: String {
    let isSecure = endpoints.first?.hasPrefix("https:") ?? false
    let hosts = endpoints.map { $0.drop { $0 != ":" }.dropFirst(3) }.joined(separator: ",")
    return "\(isSecure ? "etcds" : "etcd")://\(hosts)/\(prefix)"
  }
}
