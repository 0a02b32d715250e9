import Glibc
import Synchronization
import SystemCalls

/// A proxy before a member of etcd that loses one answer to a transaction in so many: the transaction
/// is made, and the connection ends before its answer.
package final class LossyProxy: Sendable {
  package let endpoint: String
  private let listener: SharedDescriptor
  private let counts = Counts()

  private final class Counts: Sendable {
    let answers = Atomic(0)
    let lost = Atomic(0)
  }

  /// How many answers to transactions there were, those that were lost among them.
  package var answers: Int { counts.answers.load(ordering: .relaxed) }

  /// How many answers were lost.
  package var lost: Int { counts.lost.load(ordering: .relaxed) }

  /// - Parameters:
  ///   - endpoint: "http://127.0.0.1:2379".
  ///   - share: one answer in so many is lost.
  package init(to endpoint: String, losingOneIn share: Int) throws {
    guard let port = endpoint.split(separator: ":").last.flatMap({ UInt16($0) }) else {
      throw SystemCalls.Errno.invalidArgument
    }
    let own = try EtcdNode.freePort()
    let raw = try Self.socket()
    listener = SharedDescriptor(FileDescriptor(owning: raw))
    let failed = Self.withAddress(own) { bind(raw, $0, $1) == -1 || listen(raw, 64) == -1 }
    guard !failed else { throw SystemCalls.Errno(rawValue: errno) }
    self.endpoint = "http://127.0.0.1:\(own)"
    let (listener, counts) = (listener, counts)
    try startThread(name: "test proxy") {
      while true {
        let client = accept(listener.descriptor.rawValue, nil, nil)
        guard client != -1 else { return }
        let shared = SharedDescriptor(FileDescriptor(owning: client))
        do {
          try startThread(name: "test proxied") { Self.serve(shared, port, share, counts) }
        } catch {
          print("no thread for a connection: \(error)")
        }
      }
    }
  }

  deinit { shutdown(listener.descriptor.rawValue, Int32(SHUT_RDWR)) }

  private static func serve(
    _ client: SharedDescriptor, _ port: UInt16, _ share: Int, _ counts: Counts
  ) {
    do {
      let raw = try socket()
      let server = FileDescriptor(owning: raw)
      guard withAddress(port, { connect(raw, $0, $1) == 0 }) else { return }
      let ends = [client.descriptor.rawValue, server.rawValue]
      var isTransaction = false
      while true {
        let isReady = try waitReadable(ends, until: .now + .seconds(3_600))
        if isReady[0] {
          let bytes = try Program.read(from: ends[0], maximumBytes: 1 << 16)
          guard !bytes.isEmpty else { return }
          if bytes.starts(with: "POST ".utf8) {
            isTransaction = bytes.starts(with: "POST /v3/kv/txn".utf8)
          }
          try send(bytes, to: ends[1])
        }
        if isReady[1] {
          let bytes = try Program.read(from: ends[1], maximumBytes: 1 << 16)
          guard !bytes.isEmpty else { return }
          if isTransaction {
            isTransaction = false
            let count = counts.answers.wrappingAdd(1, ordering: .relaxed).newValue
            guard !count.isMultiple(of: share) else {
              counts.lost.wrappingAdd(1, ordering: .relaxed)
              return
            }
          }
          try send(bytes, to: ends[0])
        }
      }
    } catch {
      // One of the two is gone, which the other one sees.
      return
    }
  }

  private static func send(_ bytes: [UInt8], to socket: Int32) throws {
    var rest = bytes[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes {
        Glibc.send(socket, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
      }
      guard count > 0 else { throw SystemCalls.Errno(rawValue: errno) }
      rest = rest.dropFirst(count)
    }
  }

  private static func socket() throws -> Int32 {
    let raw = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    guard raw != -1 else { throw SystemCalls.Errno(rawValue: errno) }
    return raw
  }

  private static func withAddress<Result>(
    _ port: UInt16, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Result
  ) -> Result {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
    address.sin_port = port.bigEndian
    return withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        body($0, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
  }
}
