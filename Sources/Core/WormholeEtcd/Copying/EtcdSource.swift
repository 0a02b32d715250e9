import Wormhole
import WormholeInspection

/// Reads a container on etcd, as it is at one revision.
struct EtcdSource {
  let container: EtcdContainer

  func read(_: inout NameFaults, _ body: (CopiedKey) throws -> Void) throws -> Bool {
    var rest = container.keys
    var moment: EtcdMoment?
    let start = container.start.count
    while true {
      let page: EtcdClient.Content
      do throws(EtcdError) {
        page = try container.client.page(
          rest, at: moment?.revision, limit: 64, until: .now + CallLimit.standardWait)
      } catch {
        guard error.code == .compacted else { throw error }
        // Its server has compacted the revision meanwhile.
        return false
      }
      moment = moment ?? page.moment
      guard moment?.history == page.moment.history else { return false }
      for item in page.items {
        guard let key = CopiedKey(item.key.dropFirst(start), item.value), isLasting(key, item)
        else {
          continue
        }
        try refuseFile(key, item)
        try body(key)
      }
      guard page.isIncomplete, let last = page.items.last else { return true }
      rest = rest.after(last.key)
    }
  }

  /// Refuses a file whose pieces are not with the keys.
  private func refuseFile(_ key: CopiedKey, _ item: KeyValue) throws {
    guard key.letter == .queue,
      [QueueKeyPart.waitingFiles, .takenFiles].contains(where: { key.part.hasPrefix($0.text()) }),
      AttachmentManifest(item.value)?.isInDirectory == true
    else { return }
    throw WormholeError(
      .notSupported, "copy the container", path: container.location(of: item.key),
      reason: "its content is in the directory of files=, which a copy does not read",
      remedy: "let it be received, or remove it, first")
  }

  /// Whether it outlives the processes that use the container now.
  private func isLasting(_ key: CopiedKey, _ item: KeyValue) -> Bool {
    switch key.letter {
    case .value, .state: item.value.count > CopiedKey.stampBytes
    case .post: true
    case .log: !key.part.isEmpty || item.value.count > CopiedKey.stampBytes
    case .presence, .consumer: key.part == "last"
    case .queue: !key.part.hasPrefix(QueueKeyPart.consumers.text())
    }
  }
}
