import Wormhole
import WormholeSystem

/// A notification's key on etcd: each post puts it, so its revision is new after every post.
///
/// A post whose answer is lost is made again, because two posts count as one. Its only condition is that
/// the container exists: a late copy overwrites nothing.
struct EtcdPostKey: PostStore {
  let etcd: EtcdContainer
  let key: [UInt8]

  var path: String { etcd.location(of: key) }

  func post() throws {
    var post = EtcdTransaction(if: [], then: [])
    etcd.requireContainer(in: &post)
    post.operations = [.put(key: key, value: Array(Nonce.next().utf8))]
    try etcd.changing { [post] () throws(EtcdError) in
      var outcome = try etcd.repeating(post)
      try etcd.requireContainer(in: &outcome)
    }
  }

  func mark() throws -> PostMark { Self.mark(try etcd.glance(at: .key(key)).items.first) }

  func remove(_ mark: PostMark) throws -> Bool {
    guard let mark = mark.marks.first, let revision = Int64(mark.text) else { return true }
    return try etcd.changing { () throws(EtcdError) in
      try etcd.repeating(
        EtcdTransaction(if: [.modified(key, at: revision)], then: [.delete(.key(key))])
      ).succeeded
    }
  }

  fileprivate static func mark(_ item: KeyValue?) -> PostMark {
    PostMark(Set(item.map { [FileName("\($0.modified)")] } ?? []))
  }

  func listen(_ signal: @escaping @Sendable () -> Void) throws -> any PostWatching {
    Followed(etcd: etcd, key: try MirroredKey(etcd, key, signal))
  }

  private struct Followed: PostWatching {
    let etcd: EtcdContainer
    let key: MirroredKey

    var detection: ChangeDetection { key.mirror.detection }

    func cancel() { key.cancel() }

    func mark(ofNow: Bool) throws -> PostMark {
      if ofNow { try key.mirror.catchUp(until: etcd.callDeadline) }
      if let failure = key.mirror.failure { throw failure }
      return EtcdPostKey.mark(key.state.item)
    }
  }
}
