import Testing
import WormholeSystem
import WormholeTestSupport
import WormholeToolkit

/// Commands under an exclusive role whose process is cut off from etcd: they have ended before the
/// command of a successor begins. The order is that of the lines which the commands themselves append
/// to one file.
@Suite(
  "A command under a role", .blocking, .waiting,
  .enabled(if: TestEngine.available.contains(.etcd), "there is no etcd here"))
struct RoleLossTests {
  /// A tenth of it is left for a busy machine to end a command in time.
  private static let lifetime = 10
  private static let enter = ["lock", "--name", "role", "--timeout", "120", "--"]

  private let directory: TemporaryDirectory
  private let proxy: LossyProxy
  private let prefix: String
  private let log: String

  init() throws {
    directory = try TemporaryDirectory()
    prefix = "test" + directory.path
    log = directory.path + "/log"
    proxy = try LossyProxy(to: EtcdNode.shared.get().endpoint)
    // Readable from the beginning.
    _ = try FileDescriptor.open(log, [.writeOnly, .create])
  }

  private func start(
    _ words: [String], through endpoint: String, _ command: String
  ) throws -> ChildProcess {
    let host = endpoint.dropFirst("http://".count)
    let location = "etcd://\(host)/\(prefix)?ttl=\(Self.lifetime)"
    let errors = try FileDescriptor.open(
      directory.path + "/errors", [.writeOnly, .create, .append])
    return try ChildProcess(
      try BuiltProgram.path("wormhole"),
      ["--container", location] + words + ["sh", "-c", command],
      environment: Program.environment + [
        "L=\(log)", "HOME=\(directory.path)", "XDG_STATE_HOME=\(directory.path)/state",
      ], errors: errors.rawValue)
  }

  private func text(_ path: String) throws -> String {
    String(
      decoding: try FileDescriptor.open(path, .readOnly)
        .readToEnd(expectedBytes: 0, maximumBytes: 1 << 24), as: UTF8.self)
  }

  @Test(
    "that was cut off is asked to end, and killed, before the successor's begins")
  func cutOff() throws {
    let words = Self.enter
    let late = try start(
      words, through: proxy.endpoint,
      """
      trap 'echo asked >>"$L"' TERM
      while :; do echo late >>"$L"; sleep 0.02; done
      """)
    try eventually("it runs") { try text(log).contains("late") }
    proxy.block()
    let successor = try start(
      words, through: try EtcdNode.shared.get().endpoint, "echo successor >>\"$L\"; sleep 0.5")
    #expect(try successor.wait(until: .now + .seconds(150)) == .exited(0))
    #expect(try late.wait(until: soon) == .exited(1))
    let lines = try text(log).split(separator: "\n")
    #expect(lines.last == "successor", "\(lines.suffix(10))")
    #expect(lines.filter { $0 == "asked" }.count == 1)
    #expect(lines.filter { $0 == "successor" }.count == 1)
    let said = try text(directory.path + "/errors")
    #expect(said.contains("cannot stay \"role\": etcd has not answered"), "\(said)")
  }
}
