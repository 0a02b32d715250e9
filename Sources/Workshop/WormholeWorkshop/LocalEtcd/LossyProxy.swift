import Synchronization
import WormholeSystem

/// A proxy before a member of etcd that loses answers to transactions and puts (they are made, and
/// the connection ends before the answer), cuts connections, and blocks all of them for a while.
package final class LossyProxy: Sendable {
  package let endpoint: String
  private let listener: SharedDescriptor
  private let traffic: Traffic

  private final class Traffic: Sendable {
    let onRequest: @Sendable (_ path: String) -> Void
    let answers = Atomic(0)
    let lost = Atomic(0)
    /// One answer in so many is lost; 0 for none.
    let share: Atomic<Int>
    let isBlocked = Atomic(false)
    let connections = Mutex<(next: Int, open: [Int: SharedDescriptor])>((0, [:]))

    init(onRequest: @escaping @Sendable (String) -> Void) {
      self.onRequest = onRequest
      share = Atomic(0)
    }

    func add(_ client: SharedDescriptor) -> Int {
      connections.withLock { connections in
        connections.next += 1
        connections.open[connections.next] = client
        return connections.next
      }
    }

    func remove(_ number: Int) { connections.withLock { _ = $0.open.removeValue(forKey: number) } }

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

  /// How many answers were lost.
  package var lost: Int { traffic.lost.load(ordering: .relaxed) }

  /// - Parameters:
  ///   - endpoint: "http://127.0.0.1:2379".
  ///   - share: one answer in so many is lost; none if it is 0.
  ///   - onRequest: gets the path of each request, before the member gets it.
  package init(
    to endpoint: String, losingOneIn share: Int = 0,
    onRequest: @escaping @Sendable (_ path: String) -> Void = { _ in }
  ) throws {
    guard let port = endpoint.split(separator: ":").last.flatMap({ UInt16($0) }) else {
      throw Errno.invalidArgument
    }
    let (listener, own) = try EtcdNode.listen { SharedDescriptor($0) }
    self.listener = listener
    self.endpoint = "http://127.0.0.1:\(own)"
    traffic = Traffic(onRequest: onRequest)
    lose(oneIn: share)
    let traffic = traffic
    try startThread(name: "lossy proxy") {
      while let client = Self.accept(listener) {
        guard !traffic.isBlocked.load(ordering: .relaxed) else { continue }
        do {
          let number = traffic.add(client)
          try startThread(name: "proxied") {
            Self.serve(client, port, traffic: traffic)
            traffic.remove(number)
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

  /// From now on one answer in so many is lost; none if it is 0.
  package func lose(oneIn share: Int) { traffic.share.store(share, ordering: .relaxed) }

  /// Ends all connections.
  package func cut() {
    let open = traffic.connections.withLock { Array($0.open.values) }
    for client in open { client.descriptor.endConnection() }
  }

  /// Ends all connections, and each new one at once.
  package func block() {
    traffic.isBlocked.store(true, ordering: .relaxed)
    cut()
  }

  package func unblock() { traffic.isBlocked.store(false, ordering: .relaxed) }

  /// - Returns: nil once the proxy has ended.
  private static func accept(_ listener: SharedDescriptor) -> SharedDescriptor? {
    do throws(Errno) {
      return SharedDescriptor(try listener.descriptor.acceptConnection())
    } catch {
      return nil
    }
  }

  private static func serve(_ client: SharedDescriptor, _ port: UInt16, traffic: Traffic) {
    do {
      let server = try FileDescriptor.connected(toPort: port)
      let ends = [client.descriptor.rawValue, server.rawValue]
      var isWrite = false
      while true {
        let isReady = try waitReadable(ends, until: .now + .seconds(3_600))
        if isReady[0] {
          let bytes = try Program.read(from: ends[0], maximumBytes: 1 << 16)
          guard !bytes.isEmpty else { return }
          if bytes.starts(with: "POST ".utf8) {
            let path = String(decoding: bytes.prefix(200).split(separator: 0x20)[1], as: UTF8.self)
            isWrite = ["/v3/kv/txn", "/v3/kv/put"].contains(path)
            traffic.onRequest(path)
          }
          try server.sendAll(bytes)
        }
        if isReady[1] {
          let bytes = try Program.read(from: ends[1], maximumBytes: 1 << 16)
          guard !bytes.isEmpty else { return }
          if isWrite {
            isWrite = false
            if traffic.losesThis() { return }
          }
          try client.descriptor.sendAll(bytes)
        }
      }
    } catch {
      // One of the two is gone, which the other one sees.
      return
    }
  }
}
