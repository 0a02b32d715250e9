import Synchronization
package import WormholeEtcd
import WormholeSystem
import WormholeToolkit

/// A member of an etcd cluster on loopback, with its data in its owner's directory. It ends when
/// this value is released.
package final class EtcdNode: Sendable {
  package struct Setting: Sendable {
    package var scheme = "http"
    /// The address at which its clients find it.
    package var host = "127.0.0.1"
    /// The program that starts it, with its arguments, for example in a namespace; empty if it is
    /// started here.
    package var launcher: [String] = []
    package var flags: [String] = []
    /// Whether it waits for the disk and for elections as long as by default. Even if not, a kill
    /// loses nothing that was written, because the machine keeps running.
    package var isMeasured = false
    /// The directory in which its own one is made.
    package var directory: String
    /// The value that removes that directory, kept as long as the member may need it.
    package var owner: (any Sendable)?
    /// Whether it is killed when the thread that starts it ends, at the latest with its process.
    package var endsWithThread = false

    package init(directory: String) { self.directory = directory }
  }

  package let endpoint: String
  package let name: String
  private let directory: String
  private let setting: Setting
  private let arguments: [String]
  /// The flags that a member and its restored data directory share.
  private let identity: [String]
  private let running = Mutex<Running?>(nil)

  private final class Running: Sendable {
    let child: ChildProcess
    init(_ child: consuming ChildProcess) { self.child = child }
  }

  /// How long one of its own calls may take, and a stop.
  private static let patience: Duration = .seconds(30)

  /// - Parameters:
  ///   - index: Its place in the cluster.
  ///   - peers: The addresses by which the members of the cluster know each other.
  package init(_ setting: Setting, index: Int = 0, of peers: [String]) throws {
    self.setting = setting
    name = "m\(index)"
    directory = "\(setting.directory)/\(name)"
    try makeDirectory(directory)
    endpoint = "\(setting.scheme)://\(setting.host):\(try Self.freePort())"
    let all = peers.enumerated().map { "m\($0)=\($1)" }.joined(separator: ",")
    identity = [
      "--name", name, "--data-dir", directory + "/data", "--initial-cluster", all,
      "--initial-advertise-peer-urls", peers[index],
      // Clusters differ by this, too; otherwise two with one name and port would be the same.
      "--initial-cluster-token", all + "\(Program.processID)",
    ]
    arguments =
      identity + [
        "--listen-client-urls", endpoint, "--advertise-client-urls", endpoint,
        "--listen-peer-urls", peers[index], "--log-level", "error",
      ] + (setting.isMeasured ? [] : ["--unsafe-no-fsync"]) + setting.flags
    try start()
  }

  package convenience init(alone setting: Setting) throws {
    try self.init(setting, of: ["http://127.0.0.1:\(try Self.freePort())"])
  }

  deinit { end() }

  /// Starts the program, with its stored data if it ran before. Waits until it listens, unless that
  /// is in another namespace; its first answer comes later.
  package func start() throws {
    let log = try FileDescriptor.open(
      directory + "/log", [.writeOnly, .create, .append], mode: 0o600)
    let null = try FileDescriptor.open("/dev/null", .readOnly)
    // Variables with this prefix are flags to etcd.
    let environment = Program.environment.filter { !$0.hasPrefix("ETCD_") }
    let words = setting.launcher + ["etcd"] + arguments
    let running: Running
    do throws(Errno) {
      running = Running(
        try ChildProcess(
          words[0], Array(words.dropFirst()), environment: environment, input: null.rawValue,
          output: log.rawValue, errors: log.rawValue, endsWithParent: setting.endsWithThread))
    } catch {
      guard error == .noSuchFile else { throw error }
      throw EtcdError(.refused, "etcd is not installed (Debian: apt-get install etcd-server)")
    }
    self.running.withLock { $0 = running }
    if setting.launcher.isEmpty { try waitUntilListening() }
  }

  private func waitUntilListening() throws {
    let request = HTTPRequest(url: endpoint + "/health", content: Array("{}".utf8))
    _ = poll(until: .now + Self.patience) {
      do throws(HTTPError) {
        _ = try HTTPClient().post(request, maximumBytes: 1 << 10, until: .now + .seconds(1))
        return true
      } catch {
        // It listens before it answers, and may want a certificate.
        return hasFailed || error.code != .refused
      }
    }
  }

  /// Ends it as SIGKILL does.
  package func end() {
    guard let ended = running.withLock({ $0.take() }) else { return }
    do {
      try ended.child.send(.kill)
      _ = try ended.child.wait(until: .now + Self.patience)
    } catch {
      // It has already ended, which is the aim.
      return
    }
  }

  /// Keeps its stored data, as a snapshot does. It must not run.
  package func save() throws { try runQuietly("cp", ["-a", directory + "/data", saved]) }

  private var saved: String { directory + "/saved" }

  /// Restores the last kept data: as a snapshot does, with the number of the cluster and an older
  /// revision. It must not run.
  package func restore() throws {
    try removeTree(directory + "/data")
    try runQuietly("cp", ["-a", saved, directory + "/data"])
  }

  /// Restores a snapshot, as its owner does. It must not run.
  package func restore(_ snapshot: String) throws {
    try removeTree(directory + "/data")
    try runQuietly("etcdctl", ["snapshot", "restore", snapshot] + identity)
  }

  /// Stops it, and waits until each of its threads has stopped: until then it may answer.
  package func stop() throws {
    try send(.stop)
    guard let id = running.withLock({ $0?.child.processID }) else { return }
    let threads = try FileDescriptor.open("/proc/\(id)/task", [.readOnly, .directory])
    let isStopped = try poll(until: .now + Self.patience) {
      try threads.entries().allSatisfy { try Self.isStopped($0.name.text, of: id) }
    }
    guard isStopped else { throw EtcdError(.refused, "\(name) does not stop") }
  }

  private static func isStopped(_ thread: String, of process: Int32) throws -> Bool {
    let text = try textOfFile("/proc/\(process)/task/\(thread)/stat")
    // "number (name) state …" (proc(5))
    return text.drop { $0 != ")" }.hasPrefix(") T")
  }

  package var isRunning: Bool { running.withLock { $0 != nil } }

  /// Whether it was started and has ended by itself.
  package var hasFailed: Bool {
    guard let child = running.withLock({ $0 }) else { return false }
    return ProcessStatus.of(child.child.processID)?.isDead ?? true
  }

  package func goOn() throws { try send(.continue) }

  private func send(_ signal: Signal) throws {
    try running.withLock { try $0?.child.send(signal) }
  }

  package func client(_ change: (inout EtcdConfiguration) -> Void = { _ in }) -> EtcdClient {
    var configuration = EtcdConfiguration(endpoints: [endpoint])
    change(&configuration)
    return EtcdClient(configuration)
  }

  /// Sends a request that the client does not offer.
  ///
  /// - Parameter patience: How long it may take; half a minute by default.
  @discardableResult
  package func ask(
    _ path: String, _ json: String, token: String? = nil, patience: Duration? = nil
  ) throws -> String {
    let request = HTTPRequest(
      url: "\(endpoint)/v3/\(path)", headers: token.map { ["Authorization: \($0)"] } ?? [],
      content: Array(json.utf8))
    let answer = try HTTPClient().post(
      request, maximumBytes: 1 << 20, until: .now + (patience ?? Self.patience))
    guard answer.status == 200 else {
      throw EtcdError(.refused, String(decoding: answer.content, as: UTF8.self))
    }
    return String(decoding: answer.content, as: UTF8.self)
  }

  /// A port on which no process listens now, and that no connection gets for its own end, so a
  /// member finds it free when restarted. The kernel gives connections ports from 32768 on.
  package static func freePort() throws -> UInt16 { try listen { _ in }.port }

  /// Counts up, so that this process does not give a port twice before a member uses it.
  private static let lastPort = Atomic(UInt.random(in: 0..<22_000))

  /// Listens on a free port, and gives the listener to `use`.
  static func listen<Result>(
    _ use: (consuming FileDescriptor) -> Result
  ) throws -> (result: Result, port: UInt16) {
    while true {
      let number = lastPort.wrappingAdd(1, ordering: .relaxed).newValue
      let port = UInt16(10_000 + number % 22_000)
      do throws(Errno) {
        return (use(try FileDescriptor.listening(onPort: port)), port)
      } catch {
        guard error == .addressInUse else { throw error }
      }
    }
  }
}

/// A cluster on loopback, each member of which can be killed, stopped and started again.
package final class EtcdMembers: Sendable {
  package let nodes: [EtcdNode]

  package init(_ count: Int, _ setting: EtcdNode.Setting) throws {
    let peers = try (0..<count).map { _ in "http://127.0.0.1:\(try EtcdNode.freePort())" }
    var setting = setting
    if !setting.isMeasured {
      // Twice as fast as by default: elections are waited for.
      setting.flags += ["--heartbeat-interval", "50", "--election-timeout", "500"]
    }
    nodes = try peers.indices.map { [setting] in try EtcdNode(setting, index: $0, of: peers) }
  }

  /// A client that asks one member first, then the next ones.
  package func client(
    first: Int = 0, _ change: (inout EtcdConfiguration) -> Void = { _ in }
  ) -> EtcdClient {
    nodes[first].client {
      $0.endpoints = nodes.indices.map { nodes[($0 + first) % nodes.count].endpoint }
      change(&$0)
    }
  }

  /// Waits for a leader, and returns its place.
  package func leader(
    until deadline: ContinuousClock.Instant = .now + .seconds(30)
  ) throws -> Int {
    var found: Int?
    _ = poll(until: deadline) {
      found = leaderNow()
      return found != nil
    }
    guard let found else { throw EtcdError(.unreachable, "the members have no leader") }
    return found
  }

  /// The place of the leader; nil if no member claims to lead.
  package func leaderNow() -> Int? {
    nodes.firstIndex { node in
      let status = Self.status(of: node)
      return status.map { $0.memberID == $0.leaderID } ?? false
    }
  }

  /// Lets a member lead.
  ///
  /// - Throws: `EtcdError` or an error of the transfer, if there is no leader or it does not agree.
  package func lead(_ place: Int) throws {
    guard let leader = leaderNow(), let status = Self.status(of: nodes[place]) else {
      throw EtcdError(.unreachable, "there is no leader that could hand its role over")
    }
    try nodes[leader].ask(
      "maintenance/transfer-leadership", #"{"targetID":"\#(status.memberID)"}"#,
      patience: .seconds(2))
  }

  private static func status(of node: EtcdNode) -> EtcdClient.MemberStatus? {
    // A member that was killed or stopped, or has not begun to answer, has none.
    try? node.client().status(of: node.endpoint, until: .now + .seconds(1))
  }
}
