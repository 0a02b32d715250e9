import Wormhole
import WormholeInspection
import WormholeSystem

/// The pieces with etcd's keys.
struct KeyPieces: FilePieces {
  let queue: EtcdQueue

  var isInDirectory: Bool { false }

  private func key(_ name: String) -> [UInt8] { queue.key(.pieces, name) }
  private func range(_ content: String) -> KeyRange { queue.range(.pieces, content + "/") }

  func confirm() {}

  func look() throws { try queue.container.shared.room.look(on: queue.files) }

  func makeRoom(_ bytes: Int, _ check: () throws -> Void) throws {
    try queue.container.shared.room.take(bytes, on: queue.files, check)
  }

  func put(_ piece: [UInt8], _ name: String) throws {
    try queue.client.put(key(name), piece, until: queue.files.callDeadline)
  }

  func read(_ name: String) throws -> [UInt8]? { try queue.files.item(key(name))?.value }

  func contents() throws -> Set<String> {
    guard try !queue.files.glance(at: queue.range(.pieces)).items.isEmpty else { return [] }
    let start = key("").count
    return Set(
      try queue.files.read(queue.range(.pieces), keysOnly: true).items.map { item in
        String(
          decoding: item.key.dropFirst(start).prefix { $0 != UInt8(ascii: "/") }, as: UTF8.self)
      })
  }

  func removal(of content: String) -> [EtcdTransaction.Operation] { [.delete(range(content))] }

  func discard(_ content: String) {}
}
