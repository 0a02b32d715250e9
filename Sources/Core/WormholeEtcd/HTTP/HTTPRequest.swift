package struct HTTPRequest: Sendable {
  /// An address that begins with "http://" or "https://".
  package var url: String
  /// Lines such as "Content-Type: application/json".
  package var headers: [String]
  /// The content; never empty, because an empty request could be sent twice.
  package var content: [UInt8]
  /// The trusted certificates, and the client's own; only for "https://".
  package var security: TransportSecurity
  var wantsCertificate = false

  package init(
    url: String, headers: [String] = [], content: [UInt8],
    security: TransportSecurity = TransportSecurity()
  ) {
    precondition(!content.isEmpty, "an empty request could be sent twice")
    self.url = url
    self.headers = headers
    self.content = content
    self.security = security
  }
}

/// The files of TLS, in PEM. The server's certificate and its name are always verified.
package struct TransportSecurity: Hashable, Sendable {
  /// The trusted certificates; nil for the system's.
  package var authorities: String?
  package var certificate: String?
  package var key: String?

  package init(authorities: String? = nil, certificate: String? = nil, key: String? = nil) {
    self.authorities = authorities
    self.certificate = certificate
    self.key = key
  }

  /// The files, with the names that they have in a container's location.
  var files: String {
    [("ca", authorities), ("cert", certificate), ("key", key)]
      .compactMap { name, file in file.map { "\(name)=\($0)" } }.joined(separator: ", ")
  }
}

package struct HTTPAnswer: Hashable, Sendable {
  package let status: Int
  package let content: [UInt8]
  /// Its header line `Date`; nil without one.
  package internal(set) var date: String?
  /// The server's certificate, in PEM, if the request wanted it and was the first of its connection.
  var certificate: String?
}
