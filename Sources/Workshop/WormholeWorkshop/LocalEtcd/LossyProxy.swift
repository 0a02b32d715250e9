import Synchronization
import WormholeSystem

/// A proxy for an etcd member that loses answers to transactions and puts (they are made, and the
/// connection ends before the answer), cuts connections, and blocks all of them for a while.
package final class LossyProxy: Sendable {
  package let endpoint: String
  private let listener: SharedDescriptor
  private let traffic: Traffic

  private final class Traffic: Sendable {
    let endpoint: String
    let onRequest: @Sendable (_ path: String) -> Void
    let answers = Atomic(0)
    let lost = Atomic(0)
    /// One in this many answers is lost; 0 for none.
    let share: Atomic<Int>
    let isBlocked = Atomic(false)
    let connections = Mutex<[Int32: SharedDescriptor]>([:])
    /// The path of the last request of each.
    let paths = Mutex<[Int32: String]>([:])
    let silent = Mutex<Set<Int32>>([])

    init(
      to endpoint: String, losingOneIn share: Int,
      onRequest: @escaping @Sendable (_ path: String) -> Void
    ) {
      self.endpoint = endpoint
      self.share = Atomic(share)
      self.onRequest = onRequest
    }

    func losesThis() -> Bool {
      let share = share.load(ordering: .relaxed)
      let count = answers.wrappingAdd(1, ordering: .relaxed).newValue
      guard share > 0, count.isMultiple(of: share) else { return false }
      lost.wrappingAdd(1, ordering: .relaxed)
      return true
    }
  }

  /// The number of answers to transactions and puts, including lost ones.
  package var answers: Int { traffic.answers.load(ordering: .relaxed) }

  package var lost: Int { traffic.lost.load(ordering: .relaxed) }

  /// - Parameter onRequest: gets the path of each request, before the member gets it.
  package init(
    to endpoint: String, losingOneIn share: Int = 0,
    onRequest: @escaping @Sendable (_ path: String) -> Void = { _ in }
  ) throws {
    let (listener, own) = try EtcdNode.listen { SharedDescriptor($0) }
    self.listener = listener
    self.endpoint = "http://127.0.0.1:\(own)"
    let traffic = Traffic(to: endpoint, losingOneIn: share, onRequest: onRequest)
    self.traffic = traffic
    try startThread(name: "lossy proxy") {
      while let client = Self.accept(listener) {
        let number = client.descriptor.rawValue
        // Under the lock, so that no connection escapes `block`.
        let isOpen = traffic.connections.withLock { connections in
          guard !traffic.isBlocked.load(ordering: .relaxed) else { return false }
          connections[number] = client
          return true
        }
        guard isOpen else { continue }
        do {
          try startThread(name: "proxied") {
            Self.serve(client, traffic)
            traffic.connections.withLock { $0[number] = nil }
            traffic.paths.withLock { $0[number] = nil }
            traffic.silent.withLock { _ = $0.remove(number) }
          }
        } catch {
          print("no thread for a connection: \(error)")
        }
      }
    }
  }

  deinit { listener.descriptor.endConnection() }

  /// Ends all connections, and refuses new ones permanently.
  package func end() {
    listener.descriptor.endConnection()
    block()
  }

  /// From now on one in this many answers is lost; none if it is 0.
  package func lose(oneIn share: Int) { traffic.share.store(share, ordering: .relaxed) }

  package func cut() {
    let open = traffic.connections.withLock { Array($0.values) }
    for client in open { client.descriptor.endConnection() }
  }

  /// From now on nothing passes through the current connections, although they stay open.
  ///
  /// - Parameter path: of their requests, if only some connections are meant.
  package func silence(_ path: String? = nil) {
    let open = traffic.connections.withLock { Set($0.keys) }
    traffic.paths.withLock { paths in
      traffic.silent.withLock { $0.formUnion(open.filter { path == nil || paths[$0] == path }) }
    }
  }

  /// Ends all connections, and each new one at once.
  package func block() {
    traffic.isBlocked.store(true, ordering: .relaxed)
    cut()
  }

  package func unblock() { traffic.isBlocked.store(false, ordering: .relaxed) }

  private static func accept(_ listener: SharedDescriptor) -> SharedDescriptor? {
    // It fails once the proxy has ended.
    try? SharedDescriptor(listener.descriptor.acceptConnection())
  }

  private static func serve(_ client: SharedDescriptor, _ traffic: Traffic) {
    do {
      let server = try FileDescriptor.connected(to: traffic.endpoint)
      let ends = [client.descriptor.rawValue, server.rawValue]
      let isSilent = { traffic.silent.withLock { $0.contains(ends[0]) } }
      var isWrite = false
      while true {
        let isReady = try waitReadable(ends, until: .now + .seconds(3_600))
        if isReady[0] {
          let bytes = try Program.read(from: ends[0], maximumBytes: 1 << 16)
          guard !bytes.isEmpty else { return }
          if isSilent() { continue }
          if bytes.starts(with: "POST ".utf8) {
            let words = bytes.prefix(200).split(separator: 0x20)
            let path = String(decoding: words.dropFirst().first ?? [], as: UTF8.self)
            isWrite = ["/v3/kv/txn", "/v3/kv/put"].contains(path)
            traffic.paths.withLock { $0[ends[0]] = path }
            traffic.onRequest(path)
          }
          try server.sendAll(bytes)
        }
        if isReady[1] {
          let bytes = try Program.read(from: ends[1], maximumBytes: 1 << 16)
          guard !bytes.isEmpty else { return }
          if isSilent() { continue }
          if isWrite {
            isWrite = false
            if traffic.losesThis() { return }
          }
          try client.descriptor.sendAll(bytes)
        }
      }
    } catch {
      // One of the two is gone, which the other sees.
      return
    }
  }
}
