import Wormhole
import WormholeSystem

/// The place of a container on an etcd cluster: its members, a prefix of keys, and the credentials.
///
/// As text, for `SharedContainer(location:)` and in `WORMHOLE_CONTAINER`:
/// `etcds://user@host1:2379,host2:2379/cinema?ca=ca.pem&password-file=pw`. `etcds` is etcd with TLS,
/// `etcd` without; the port is 2379 if none is named.
///
/// | parameter | meaning |
/// |---|---|
/// | `ca` | the trusted certificates, a file in PEM; by default the system's |
/// | `cert`, `key` | the client's certificate and its key, files in PEM |
/// | `password-file` | a file with the user's password; otherwise it is in `WORMHOLE_ETCD_PASSWORD` |
/// | `file-limit` | the largest size of a sent file in MiB, 1 to 4096; 64 by default |
/// | `files` | a directory that all machines share, for the content of sent files |
/// | `ttl` | the seconds after which a silent process counts as ended, 2 to 60; 8 by default |
///
/// ```swift
/// var location = try EtcdLocation("etcds://h1,h2,h3/cinema")
/// location.lifetime = .seconds(10)
/// let shared = try SharedContainer(etcd: location)
/// ```
public struct EtcdLocation: Sendable, Hashable {
  /// The addresses of members, such as "https://host1:2379"; at least one.
  public var endpoints: [String]
  /// The beginning of the container's keys, without a slash at its ends: "cinema".
  public var prefix: String
  /// How long a silent process still counts as alive: whole seconds, 2 to 60.
  public var lifetime: Duration = .seconds(8)
  /// The largest size in bytes of a file sent through the cluster; 64 MiB by default. Its members
  /// keep the whole file in their database, for all of their users, until the history is compacted.
  public var fileLimit: Int64 = Self.standardFileLimit
  /// A directory that all machines share, by any path, such as one on NFS: it holds the content of
  /// sent files, and the cluster only their names, sizes and checksums. Nil for the cluster.
  public var files: String?
  /// The user, if the cluster asks for one.
  public var user: String?
  /// The file with the user's password, and perhaps a line break.
  public var passwordFile: String?
  /// The file with the trusted certificates, in PEM; nil for the system's.
  public var authorities: String?
  /// The file with the client's certificate, in PEM.
  public var certificate: String?
  /// The file with the key of the client's certificate, in PEM.
  public var key: String?
  /// The password itself; never part of a description.
  var password: Secret?

  /// Creates a location.
  ///
  /// - Parameters:
  ///   - endpoints: The addresses of members, such as "https://host1:2379"; at least one.
  ///   - prefix: The beginning of the container's keys.
  public init(endpoints: [String], prefix: String) {
    self.endpoints = endpoints
    self.prefix = prefix
  }

  static let standardFileLimit: Int64 = 64 << 20
  static let passwordVariable = "WORMHOLE_ETCD_PASSWORD"
  /// How long to wait for a cluster that may be just starting.
  private static let firstPatience: Duration = .seconds(2)
}

// Connecting.
extension EtcdLocation {
  /// Returns the configuration of the client of etcd.
  ///
  /// - Parameter state: The directory of the state of programs, for the user's token; nil for none.
  /// - Throws: `WormholeError`: `permissionDenied` for a user without a password, and for a file
  ///   with a password or a key that other users may use; or an error of reading it.
  func configuration(keepingTokenIn state: String?) throws -> EtcdConfiguration {
    guard !endpoints.isEmpty else {
      throw WormholeError(
        .containerMissing, "open the container", path: description, reason: "it has no endpoint")
    }
    if let key {
      // A missing file is reported where it is used.
      let status = try reporting("use the key", path: key) {
        try ifPresent(fileStatus(key, followingLinks: true))
      }
      try status.map { try Self.requireSecret("use the key", key, status: $0) }
    }
    var configuration = EtcdConfiguration(endpoints: endpoints)
    configuration.firstPatience = Self.firstPatience
    configuration.security = TransportSecurity(
      authorities: authorities, certificate: certificate, key: key)
    if let user {
      let (password, file) = try readPassword(of: user)
      configuration.credentials = Credentials(user: user, password: password)
      if let file, let state {
        configuration.token = TokenFile(
          of: user, at: endpoints, password: file, in: state)
      }
    }
    return configuration
  }

  func stateDirectory() throws(WormholeError) -> String {
    // The specification says that a relative path must be ignored.
    if let state = Program.environment("XDG_STATE_HOME"), state.hasPrefix("/") { return state }
    if let home = Program.homeDirectory, home.hasPrefix("/") { return home + "/.local/state" }
    throw WormholeError(
      .containerMissing, "find this machine's directory of the container", path: description,
      reason: "neither XDG_STATE_HOME nor HOME is set", remedy: "set HOME")
  }

  /// Returns the password, and the status of its file if it is in one.
  private func readPassword(of user: String) throws -> (String, FileStatus?) {
    if let password { return (password.text, nil) }
    guard let passwordFile else {
      if let password = Program.environment(Self.passwordVariable) { return (password, nil) }
      throw WormholeError(
        .permissionDenied, "open the container", path: description,
        reason: "there is no password for \"\(user)\"",
        remedy: "add ?password-file=FILE, or set \(Self.passwordVariable)")
    }
    return try reporting("read the password", path: passwordFile) {
      let file = try FileDescriptor.open(passwordFile, [.readOnly, .nonBlocking])
      let status = try file.status()
      try Self.requireSecret("read the password", passwordFile, status: status)
      let bytes = try file.readToEnd(expectedBytes: 0, maximumBytes: 4_096)
      return (String(decoding: bytes.prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self), status)
    }
  }

  private static func requireSecret(
    _ action: String, _ path: String, status: FileStatus
  ) throws(WormholeError) {
    guard status.permissions & 0o007 != 0 else { return }
    throw WormholeError(
      .permissionDenied, action, path: path,
      reason: "others may use it (its mode is 0\(String(status.permissions & 0o777, radix: 8)))",
      remedy: "chmod 600 \(path)")
  }
}
