import WormholeSystem

/// The directory that `etcd init` makes.
///
/// ```
/// h1/  h2/  h3/        for each machine: etcd.yml, the unit, `install`; with TLS its certificate
/// users                with TLS: creates the users
/// clients/<user>/      with TLS, for each user: ca.pem, client.pem, client.key, password
/// authority/           with TLS: the key that signs certificates
/// ```
struct ClusterDirectory {
  let plan: ClusterPlan
  let path: String

  /// Makes the directory, which must not exist.
  ///
  /// - Parameter progress: Gets what is made next.
  func make(progress: (String) -> Void) throws {
    try Self.makeDirectory(path)
    let certificates = ClusterCertificates(directory: path + "/authority")
    if plan.isEncrypted {
      try Self.makeDirectory(certificates.directory)
      try certificates.makeAuthority()
    }
    for host in plan.hosts {
      progress(host)
      let machine = "\(path)/\(host)"
      try Self.makeDirectory(machine)
      try Self.write(machine + "/etcd.yml", plan.configuration(of: host))
      try Self.write("\(machine)/\(ClusterPlan.service)", plan.unit(of: host))
      try Self.write(machine + "/install", plan.installation, mode: 0o755)
      if plan.isEncrypted {
        try certificates.make("member", for: .member(host: host), in: machine)
      }
    }
    guard plan.isEncrypted else { return }
    try Self.write(path + "/users", plan.users, mode: 0o755)
    try Self.makeDirectory(path + "/clients")
    for user in [ClusterPlan.administrator] + plan.containers {
      progress(user)
      let files = self.files(of: user)
      try Self.makeDirectory(files)
      try Self.write(files + "/password", Array("\(Self.password())\n".utf8), mode: 0o600)
      try certificates.make("client", for: .client, in: files)
    }
  }

  /// The directory with the files of a user.
  func files(of user: String) -> String { "\(path)/clients/\(user)" }

  /// 128 random bits.
  private static func password() -> String {
    (0..<2).map { _ in
      let text = String(UInt64.random(in: .min ... .max), radix: 16)
      return String(repeating: "0", count: 16 - text.count) + text
    }.joined()
  }

  private static func makeDirectory(_ path: String) throws {
    do throws(Errno) {
      try WormholeSystem.makeDirectory(path)
    } catch {
      throw CommandError(
        cannot: "make \(path)",
        because: error == .alreadyExists
          ? "it exists already; remove it, or name another one with --directory" : "\(error)")
    }
  }

  private static func write(_ file: String, _ text: String, mode: UInt32 = 0o644) throws {
    try write(file, Array(text.utf8), mode: mode)
  }

  static func write(_ file: String, _ content: [UInt8], mode: UInt32) throws {
    try reporting(cannot: "write \(file)") { () throws(Errno) in
      try FileDescriptor.open(file, [.writeOnly, .create, .exclusive], mode: mode).writeAll(content)
    }
  }

  /// Writes a file again.
  static func replace(_ file: String, _ content: [UInt8]) throws {
    try reporting(cannot: "write \(file)") { () throws(Errno) in
      try FileDescriptor.open(file, [.writeOnly, .create, .truncate], mode: 0o644).writeAll(content)
    }
  }
}
