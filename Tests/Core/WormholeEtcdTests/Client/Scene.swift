import WormholeEtcd
import WormholeTestSupport

/// A test's own part of the shared member.
struct Scene {
  let client: EtcdClient
  let prefix: [UInt8]

  init() throws {
    client = try EtcdNode.shared.get().client()
    prefix = Array("test/\(UInt64.random(in: .min ... .max))/".utf8)
  }

  func key(_ name: String) -> [UInt8] { prefix + Array(name.utf8) }

  var all: KeyRange { .prefix(prefix) }

  /// Stores a value, whatever there was; returns the revision.
  @discardableResult
  func set(_ name: String, _ text: String, lease: Int64 = 0) throws -> Int64 {
    try client.commit(
      EtcdTransaction(
        if: [.version(of: key(name), -1, is: .greater)],
        then: [.put(key: key(name), value: Array(text.utf8), lease: lease)]), until: soon
    ).revision
  }
}
