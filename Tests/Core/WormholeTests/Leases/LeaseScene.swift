import Synchronization
import WormholePropertyLists
import WormholeSystem
import WormholeTestSupport

@testable import Wormhole
@testable import WormholeInspection

/// A value "k" that is 0, and its lease, for tests that execute the lease's steps one by one.
struct LeaseScene {
  let directory: TemporaryDirectory
  let value: PlainValue

  init() throws {
    directory = try TemporaryDirectory()
    value = try directory.container().value("k")
    try value.replace(with: 0)
  }

  var lease: String { directory.path + "/values/k/lease" }

  func site() throws -> LeaseSite {
    LeaseSite(
      directory: SharedDescriptor(try value.directory.openOrMake()), home: value.container.root,
      path: value.path)
  }

  func request(
    term: Duration = SharedContainer.standardTerm, keeping keptLease: KeptLease? = nil
  ) throws -> LeaseRequest {
    LeaseRequest(site: try site(), term: term, deadline: .now + .seconds(20), keeping: keptLease)
  }

  func acquire(term: Duration = SharedContainer.standardTerm) throws -> HeldLease {
    try Self.finish(try request(term: term))
  }

  static func finish(_ request: LeaseRequest) throws -> HeldLease {
    HeldLease(try request.run())
  }

  /// Takes steps until there is nothing to do but wait.
  ///
  /// - Returns: false when the lease is there instead.
  static func isWaiting(_ request: LeaseRequest) throws -> Bool {
    while true {
      let step = try request.step()
      switch step {
      case .done: return false
      case .wait: return true
      case .spin, .handOver: _ = step.block()
      }
    }
  }

  /// Returns the names in a directory of the lease.
  func names(in subdirectory: String = "") throws -> [String] {
    try directory.names("values/k/lease/" + subdirectory)
  }

  func make(_ path: String, containing text: String = "") throws {
    let file = try FileDescriptor.open(
      lease + "/" + path, [.writeOnly, .create, .exclusive], mode: 0o600)
    try file.writeAll(Array(text.utf8))
  }

  /// Makes the lease look like one that its first holder has not marked yet. That holder creates an
  /// entry, which the directory's times show; on tmpfs they may not show a removal alone.
  func removeMark() throws {
    try make("held/first")
    try removeFile(lease + "/held/first")
    try removeFile(lease + "/held/clean")
  }

  func move(_ old: String, to new: String) throws {
    try rename(
      lease + "/" + old, at: Directory.current, to: lease + "/" + new, at: Directory.current)
  }

  var litter: [String] { Litter.entries(of: "k", in: directory) }
}

/// Keeps a lease alive until it is ended.
final class HeldLease: Sendable {
  private let lease: Mutex<Lease?>
  init(_ lease: Lease) { self.lease = Mutex(lease) }
  func end() { lease.withLock { $0 = nil } }
  func confirm() throws { try lease.withLock { try $0?.confirm() } }
}
