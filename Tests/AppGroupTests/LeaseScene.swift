import PropertyLists
import Synchronization
import SystemCalls
import TestSupport

@testable import AppGroup

/// A value "k" that is 0, and its lease, for tests that take the lease's steps one by one.
struct LeaseScene {
  let directory: TemporaryDirectory
  let value: Value

  init() throws {
    directory = try TemporaryDirectory()
    value = try directory.container().value("k")
    try value.replace(with: 0)
  }

  var lease: String { directory.path + "/values/k/lease" }

  func site() throws -> LeaseSite {
    LeaseSite(
      directory: try value.directory.openOrMake(), home: value.container.root, path: value.path)
  }

  func request(
    _ mode: LockMode, within limit: Duration = .seconds(20), term: Duration = LeaseTerm.standard
  ) throws -> LeaseRequest {
    LeaseRequest(site: try site(), mode: mode, term: term, deadline: .now + limit)
  }

  func acquire(_ mode: LockMode, term: Duration = LeaseTerm.standard) throws -> HeldLease {
    try Self.finish(try request(mode, term: term))
  }

  static func finish(_ request: LeaseRequest) throws -> HeldLease {
    while true {
      switch try request.attempt() {
      case .acquired(let lease): return HeldLease(lease)
      case .wait(let deadline): request.latch.block(until: deadline)
      }
    }
  }

  /// The names in a directory of the lease.
  func names(in subdirectory: String = "") throws -> [String] {
    try FileDescriptor.open(lease + "/" + subdirectory, [.readOnly, .directory]).entries()
      .map(\.name.text).sorted()
  }

  func make(_ path: String, containing text: String = "") throws {
    let file = try FileDescriptor.open(
      lease + "/" + path, [.writeOnly, .create, .exclusive], mode: 0o600)
    try file.writeAll(Array(text.utf8))
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
