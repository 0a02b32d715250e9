import Glibc
package import WormholeEtcd
import WormholeSystem
import WormholeToolkit
@_exported public import WormholeWorkshop

extension EtcdNode {
  /// Whether there is no etcd to test with.
  package static let isMissing: Bool = {
    do {
      let null = try FileDescriptor.open("/dev/null", .readWrite)
      _ = try ChildProcess("etcd", ["--version"], output: null.rawValue).wait(
        until: .now + testPatience)
      return false
    } catch {
      print("skipped: no etcd here (Debian: apt-get install etcd-server): \(error)")
      return true
    }
  }()

  /// Whether there is no program that saves and restores snapshots.
  package static let isControlMissing: Bool = {
    do {
      try runQuietly("etcdctl", ["version"])
      return false
    } catch {
      print("skipped: no etcdctl here (Debian: apt-get install etcd-client): \(error)")
      return true
    }
  }()

  /// A location whose session outlives a call that gets no answer.
  package var patientLocation: EtcdLocation {
    var location = EtcdLocation(endpoints: [endpoint], prefix: "test")
    location.lifetime = .seconds(60)
    return location
  }

  /// The member of all tests that need no faults; each test has its own prefix. A container there that this
  /// process opens without a companion has its directory in that of the run.
  package static let shared = Result {
    // Other threads may look at the environment meanwhile. The first call of setenv(3) in a process
    // frees nothing of what they look at.
    setenv("XDG_STATE_HOME", try TemporaryDirectory.ofRun() + "/state", 1)
    return try EtcdNode()
  }

  /// A cluster of one member. It ends with this value, at the latest with the test run, because its
  /// arguments have the path of the run's directory.
  ///
  /// - Parameters:
  ///   - scheme: "https" with the flags for it.
  ///   - flags: Further flags.
  package convenience init(scheme: String = "http", flags: [String] = []) throws {
    try self.init(alone: .inTest(scheme, flags))
  }
}

extension EtcdNode {
  /// Ends it, keeps what it has stored, and starts it again.
  package func endAndSave() throws {
    end()
    try save()
    try startAgain()
  }

  /// Ends it, and starts it with what was kept.
  ///
  /// - Parameter snapshot: A snapshot of it; nil for what `endAndSave` kept.
  package func endAndRestore(_ snapshot: String? = nil) throws {
    end()
    if let snapshot { try restore(snapshot) } else { try restore() }
    try startAgain()
  }

  /// Starts it, once more if somebody else has its port at that moment, and waits for its first answer.
  private func startAgain() throws {
    try start()
    try eventually("it answers") {
      if hasFailed { try start() }
      do throws(EtcdError) {
        _ = try client().read(.key([0]), until: .now + .seconds(2))
        return true
      } catch {
        // It does not listen yet.
        return false
      }
    }
  }
}

extension EtcdMembers {
  /// A cluster of three members, each of which can be killed, stopped and started again.
  package convenience init() throws { try self.init(3, .inTest()) }
}

extension EtcdNode.Setting {
  fileprivate static func inTest(
    _ scheme: String = "http", _ flags: [String] = []
  ) throws -> Self {
    let directory = try TemporaryDirectory()
    var setting = Self(directory: directory.path)
    setting.owner = directory
    setting.scheme = scheme
    setting.flags = flags
    return setting
  }
}
