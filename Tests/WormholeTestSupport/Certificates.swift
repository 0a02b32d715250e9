import WormholeSystem

/// Certificates of an authority of the test's own.
package struct Certificates {
  package static let areMissing: Bool = {
    do {
      try run(["version"])
      return false
    } catch {
      print("skipped: no openssl here (Debian: apt-get install openssl): \(error)")
      return true
    }
  }()

  package let directory: TemporaryDirectory
  package var authority: String { directory.path + "/authority.pem" }

  package init() throws {
    directory = try TemporaryDirectory()
    try Self.run(Self.request("authority", in: directory.path))
    for name in ["server", "client", "nameless"] {
      try Self.run(
        Self.request(name, in: directory.path) + [
          "-CA", authority, "-CAkey", "\(directory.path)/authority.key",
          "-addext", "subjectAltName=IP:127.0.0.1", "-addext", "basicConstraints=CA:FALSE",
        ])
    }
  }

  private static func request(_ name: String, in directory: String) -> [String] {
    [
      "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
      "-days", "2", "-subj", name == "nameless" ? "/O=cinema" : "/CN=\(name)", "-keyout",
      "\(directory)/\(name).key",
      "-out", "\(directory)/\(name).pem",
    ]
  }

  private static func run(_ arguments: [String]) throws {
    let null = try FileDescriptor.open("/dev/null", .readWrite)
    let child = try ChildProcess(
      "openssl", arguments, input: null.rawValue, output: null.rawValue, errors: null.rawValue)
    let end = try child.wait(until: soon)
    guard end == .exited(0) else {
      throw NeverHappened(
        what: "openssl \(arguments.first ?? "") succeeds: \(String(describing: end))")
    }
  }
}
