package import EtcdClient
import Glibc
import HTTPTransfers
import Synchronization
import SystemCalls

/// A cluster of one member on loopback, or a member of several (`EtcdMembers`), with its data in a directory of the test. It ends with this
/// value, at the latest with the test run, because its arguments have the directory's path.
package final class EtcdNode: Sendable {
  /// Whether there is no etcd to test with.
  package static let isMissing: Bool = {
    do {
      let null = try FileDescriptor.open("/dev/null", .readWrite)
      _ = try ChildProcess("etcd", ["--version"], output: null.rawValue).wait(
        until: .now + .seconds(30))
      return false
    } catch {
      print("skipped: no etcd here (Debian: apt-get install etcd-server): \(error)")
      return true
    }
  }()

  /// The member of all tests that need no faults; each test has its own prefix.
  package static let shared = Result { try EtcdNode() }

  package let endpoint: String
  let directory: TemporaryDirectory
  private let arguments: [String]
  private let running = Mutex<Running?>(nil)

  private final class Running: Sendable {
    let child: ChildProcess
    init(_ child: consuming ChildProcess) { self.child = child }
  }

  /// - Parameters:
  ///   - scheme: "https" with the flags for it.
  ///   - flags: Further flags.
  package convenience init(scheme: String = "http", flags: [String] = []) throws {
    let peer = "http://127.0.0.1:\(try Self.freePort())"
    try self.init(scheme: scheme, flags: flags, index: 0, of: [peer])
  }

  init(scheme: String, flags: [String], index: Int, of peers: [String]) throws {
    directory = try TemporaryDirectory()
    endpoint = "\(scheme)://127.0.0.1:\(try Self.freePort())"
    let all = peers.enumerated().map { "m\($0)=\($1)" }.joined(separator: ",")
    arguments =
      [
        "--name", "m\(index)",
        "--data-dir", directory.path + "/data", "--listen-client-urls", endpoint,
        "--advertise-client-urls", endpoint, "--listen-peer-urls", peers[index],
        "--initial-advertise-peer-urls", peers[index], "--initial-cluster", all,
        // Clusters differ by this, too; otherwise two of one name and port are the same.
        "--initial-cluster-token", all + "\(Program.processID)",
        // Tests need no durability.
        "--unsafe-no-fsync", "--log-level", "error",
      ] + flags
    try start()
  }

  deinit { end() }

  /// Starts the program, with what it had stored if it ran before. Does not wait for its answer:
  /// the client does.
  package func start() throws {
    let log = try FileDescriptor.open(
      directory.path + "/log", [.writeOnly, .create, .append], mode: 0o600)
    let null = try FileDescriptor.open("/dev/null", .readOnly)
    // Variables that begin so are flags to etcd.
    let environment = Program.environment.filter { !$0.hasPrefix("ETCD_") }
    let child = try ChildProcess(
      "etcd", arguments, environment: environment, input: null.rawValue, output: log.rawValue,
      errors: log.rawValue)
    let running = Running(child)
    self.running.withLock { $0 = running }
  }

  /// Ends it as SIGKILL does.
  package func end() {
    guard
      let ended = running.withLock({ running in
        defer { running = nil }
        return running
      })
    else { return }
    do {
      try ended.child.send(.kill)
      _ = try ended.child.wait(until: .now + .seconds(30))
    } catch {
      // It has ended already, which is the aim.
      return
    }
  }

  /// Stops it, and waits until each of its threads has stopped: until then it may answer.
  package func stop() throws {
    try send(.stop)
    guard let id = running.withLock({ $0?.child.processID }) else { return }
    let threads = try FileDescriptor.open("/proc/\(id)/task", [.readOnly, .directory])
    try eventually("it has stopped") {
      try threads.entries().allSatisfy { thread in
        let file = try FileDescriptor.open("/proc/\(id)/task/\(thread.name.text)/stat", .readOnly)
        let text = String(
          decoding: try file.readToEnd(expectedBytes: 0, maximumBytes: 8_192), as: UTF8.self)
        // "number (name) state …" (proc(5))
        return text.drop { $0 != ")" }.hasPrefix(") T")
      }
    }
  }

  package var isRunning: Bool { running.withLock { $0 != nil } }

  package func goOn() throws { try send(.continue) }

  private func send(_ signal: Signal) throws {
    try running.withLock { try $0?.child.send(signal) }
  }

  package func client(_ change: (inout EtcdConfiguration) -> Void = { _ in }) -> EtcdClient {
    var configuration = EtcdConfiguration(endpoints: [endpoint])
    change(&configuration)
    return EtcdClient(configuration)
  }

  /// Asks for what the client does not offer.
  @discardableResult
  package func ask(_ path: String, _ json: String, token: String? = nil) throws -> String {
    let request = HTTPRequest(
      url: "\(endpoint)/v3/\(path)", headers: token.map { ["Authorization: \($0)"] } ?? [],
      content: Array(json.utf8))
    let answer = try HTTPClient().post(request, maximumBytes: 1 << 20, until: soon)
    guard answer.status == 200 else {
      throw EtcdError(.refused, String(decoding: answer.content, as: UTF8.self))
    }
    return String(decoding: answer.content, as: UTF8.self)
  }

  /// A port that nobody listens on now, below those that the kernel gives to connections: one of these
  /// may be taken before somebody listens on it.
  package static func freePort() throws -> UInt16 {
    for _ in 0..<100 {
      let port = UInt16.random(in: 10_240..<32_768)
      let raw = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
      guard raw != -1 else { throw SystemCalls.Errno(rawValue: errno) }
      defer { close(raw) }
      var address = sockaddr_in()
      address.sin_family = sa_family_t(AF_INET)
      address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
      address.sin_port = port.bigEndian
      let isFree = withUnsafeMutablePointer(to: &address) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
          bind(raw, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
        }
      }
      if isFree { return port }
    }
    throw SystemCalls.Errno(rawValue: EADDRINUSE)
  }
}

/// The deadline of calls that have to succeed.
package var soon: ContinuousClock.Instant { .now + .seconds(30) }
