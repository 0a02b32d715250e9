import Synchronization
public import Wormhole
import WormholeSystem

/// Containers on etcd, for processes of several machines.
///
/// ```swift
/// EtcdEngine.register()                            // once, at the start of the program
/// let shared = try SharedContainer(location: "etcds://h1,h2,h3/cinema")
/// try shared.value("seats").replace(with: 100)
/// ```
public enum EtcdEngine {
  /// Lets this program open locations such as `etcds://host1,host2/cinema`, with
  /// `SharedContainer(location:)` and wherever the environment names a container. Calling it again
  /// has no effect.
  public static func register() {
    Engines.register(["etcd", "etcds"]) { try EtcdLocation($0) }
  }
}

extension SharedContainer {
  /// Opens a container on etcd, and creates it if it is missing. All containers of a process at one
  /// location share its connections.
  ///
  /// - Throws: `WormholeError.Code.clusterUnreachable` with each member's answer: at once if it
  ///   cannot change (a certificate, not etcd), after 2 seconds without a server or an address,
  ///   after 10 without an answer. `.permissionDenied`, `.formatTooNew`, `.notSupported` if libcurl
  ///   is missing.
  @available(*, noasync, message: "it blocks; open it before, or on a thread of its own")
  public convenience init(etcd location: EtcdLocation) throws { try self.init(at: location) }
}

extension EtcdLocation: EngineLocation {
  package func appending(_ component: String) -> Self {
    var place = self
    place.prefix += "/" + component
    return place
  }

  package func open(
    creates: Bool, ofGroup: Bool, _ limit: CallLimit
  ) throws -> (any ContainerEngine)? {
    let container = try EtcdContainer.open(self, creates: creates, limit)
    if ofGroup { container?.shared.isOfGroup.store(true, ordering: .relaxed) }
    return container
  }
}

extension EtcdContainer: ValueEngine, PresenceEngine, PostEngine, QueueEngine, LogEngine {
  package var host: String? { shared.host }

  package func limited(_ limit: CallLimit) -> (any ContainerEngine)? { with(limit) }

  package func value(
    _ identifier: String, _ kind: NameKind, in container: SharedContainer
  ) -> any ValueStore { EtcdValue(self, container: container, identifier, kind: kind) }

  package func change<Result: Sendable>(
    _ update: ValuesUpdate<Result>
  ) -> sending any Waiting<Result> { EtcdValuesChange(update, on: self) }

  package func presence(
    _ name: String, _ kind: NameKind, in container: SharedContainer
  ) -> any PresenceStore { EtcdPresence(self, name: name, kind: kind) }

  package func watchOwnPresenceNames(
    _ signal: @escaping @Sendable () -> Void
  ) throws -> any Cancelling {
    // The first registration of a name creates its key `last`, which stays.
    try KeyWatch(self, .prefix(key("p", isOwn: true))) { events in
      let isNew = events.contains { event in
        event.kind == .put && event.keyValue.created == event.keyValue.modified
          && event.keyValue.key.suffix(5).elementsEqual("/last".utf8)
      }
      if isNew { signal() }
    } mayHaveMissed: {
      signal()
    }
  }

  package func posts(_ name: String) -> any PostStore {
    EtcdPostKey(etcd: self, key: key(.notification, name))
  }

  package func queue(_ queue: PlainQueue) -> any QueueStore { EtcdQueue(queue, in: self) }

  package func attachments(of queue: PlainQueue) -> any AttachmentStore {
    EtcdQueue(queue, in: self)
  }

  package func log(_ name: String) -> any LogStore { EtcdLog(self, name) }
}

extension EtcdContainer {
  /// Returns the requests of a caller's first look.
  func looks(_ first: Prefetch) -> [EtcdTransaction] {
    switch first {
    case .value(let name):
      return [EtcdTransaction(if: [], then: [.read(.key(key(.value, name)))])]
    case .log(let name): return [EtcdLog(self, name).look]
    case .queue(let name, let isOwn, let sender):
      let queue = key(NameKind(.queue, isOwn: isOwn), name, part: "/")
      guard let sender else {
        return [EtcdQueue.firstUse(.prefix(queue)), EtcdQueueView.look(at: queue)]
      }
      return [EtcdBatchWriter.look(of: sender.component, queue)]
    }
  }
}
