import WormholePropertyLists
import WormholeSystem
import WormholeTerminals
import WormholeToolkit

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

  /// Makes the directory, which must not exist; `progress` gets what is made next.
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
      if plan.isEncrypted { try certificates.make("member", for: .member(host: host), in: machine) }
    }
    guard plan.isEncrypted else { return }
    try Self.write(path + "/users", plan.users, mode: 0o755)
    try Self.makeDirectory(path + "/clients")
    for user in [ClusterPlan.administrator] + plan.containers {
      progress(user)
      let files = self.files(of: user)
      try Self.makeDirectory(files)
      try Self.write(files + "/password", "\(Self.password())\n", mode: 0o600)
      try certificates.make("client", for: .client, in: files)
    }
  }

  func files(of user: String) -> String { "\(path)/clients/\(user)" }

  /// 128 random bits.
  private static func password() -> String {
    UInt128.random(in: .min ... .max).padded(to: 32, radix: 16)
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

  /// - Parameter condition: `.truncate` for a file that may exist.
  static func write(
    _ file: String, _ text: String, mode: UInt32 = 0o644, condition: OpenOptions = .exclusive
  ) throws {
    try reporting(
      cannot: "write \(file)",
      FileDescriptor.open(file, [.writeOnly, .create, condition], mode: mode)
        .writeAll(Array(text.utf8)))
  }
}

/// The authority of a cluster, and the certificates that it signs, made by openssl(1).
///
/// No certificate has a common name: etcd's gateway refuses one that has, once etcd has users.
struct ClusterCertificates {
  /// The directory with the authority's key, which no member and no program needs.
  let directory: String

  private var certificate: String { directory + "/ca.pem" }
  private var key: String { directory + "/ca.key" }
  private var configuration: String { directory + "/openssl.cnf" }
  /// Ten years: a cluster whose certificates have ended stops at once.
  private static let days = "3650"

  enum Use {
    /// A member, as a server, and as a client of the others. Its own gateway is its client, too.
    case member(host: String)
    case client

    fileprivate var extensions: String {
      switch self {
      case .client: "extendedKeyUsage = clientAuth"
      case .member(let host):
        "extendedKeyUsage = serverAuth, clientAuth\nsubjectAltName = "
          + "\(ClusterPlan.isAddress(host) ? "IP" : "DNS"):\(host), DNS:localhost, IP:127.0.0.1"
      }
    }
  }

  func makeAuthority() throws {
    try configure("basicConstraints = critical, CA:TRUE\nkeyUsage = critical, keyCertSign, cRLSign")
    try makeKey(key)
    try Self.run([
      "req", "-x509", "-new", "-key", key, "-config", configuration, "-extensions", "made", "-subj",
      "/O=wormhole/OU=authority", "-days", Self.days, "-out", certificate,
    ])
  }

  /// Makes the files `NAME.pem` and `NAME.key`, and `ca.pem` beside them.
  func make(_ name: String, for use: Use, in target: String) throws {
    let (made, request) = ("\(target)/\(name)", directory + "/request")
    try configure("basicConstraints = CA:FALSE\n" + use.extensions)
    try makeKey(made + ".key")
    try Self.run([
      "req", "-new", "-key", made + ".key", "-config", configuration, "-subj", "/O=wormhole",
      "-out", request,
    ])
    // A random number, so that no file has to keep the last one.
    try Self.run([
      "x509", "-req", "-in", request, "-CA", certificate, "-CAkey", key, "-days", Self.days,
      "-extfile", configuration, "-extensions", "made", "-set_serial",
      "0x" + String(UInt64.random(in: 1 ... .max) >> 1 | 1, radix: 16), "-out", made + ".pem",
    ])
    let authority = try reporting(cannot: "read \(certificate)", textOfFile(certificate))
    try ClusterDirectory.write("\(target)/ca.pem", authority)
    try reporting(cannot: "remove \(request)", removeFile(request))
  }

  private func configure(_ extensions: String) throws {
    try ClusterDirectory.write(
      configuration, "[req]\ndistinguished_name = name\n[name]\n[made]\n\(extensions)\n",
      condition: .truncate)
  }

  private func makeKey(_ file: String) throws {
    try ClusterDirectory.write(file, "", mode: 0o600)
    try Self.run([
      "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", file,
    ])
  }

  private static func run(_ words: [String]) throws {
    let action = "make certificates"
    do {
      let pipe = try makePipe()
      let output = pipe.write.rawValue
      let child = try ChildProcess("openssl", words, output: output, errors: output)
      let said = try pipe.takeRead().descriptor.readToEnd(expectedBytes: 0, maximumBytes: 64 << 10)
      guard try child.wait(until: .now + .seconds(60)) != .exited(0) else { return }
      throw CommandError(
        cannot: action,
        because: "openssl \(words[0]) failed: \(String(decoding: said, as: UTF8.self))")
    } catch let error as Errno {
      throw CommandError(
        cannot: action,
        because: error == .noSuchFile
          ? "openssl is not installed (Debian: apt-get install openssl)" : "\(error)")
    }
  }
}
