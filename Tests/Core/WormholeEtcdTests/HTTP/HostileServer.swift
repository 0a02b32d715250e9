import Glibc
import Synchronization
import WormholeEtcd
import WormholeSystem
import WormholeTestSupport

/// A server of HTTP on loopback that answers as the test wants, also wrongly.
final class HostileServer: Sendable {
  let port: UInt16
  private let listener: SharedDescriptor

  /// - Parameter answer: Called for each connection on a thread of its own.
  init(_ answer: @escaping @Sendable (Connection) throws -> Void) throws {
    let (listener, port) = try Self.listen()
    self.listener = SharedDescriptor(FileDescriptor(owning: listener))
    self.port = port
    let (shared, requests) = (self.listener, Requests())
    self.requests = requests
    try startThread(name: "test server") {
      while true {
        let raw = accept(shared.descriptor.rawValue, nil, nil)
        guard raw != -1 else { return }
        let connection = Connection(FileDescriptor(owning: raw), requests)
        do {
          try startThread(name: "test connection") {
            do {
              try answer(connection)
            } catch {
              // The client is gone, which the client's result shows.
              return
            }
          }
        } catch {
          print("no thread for a connection: \(error)")
        }
      }
    }
  }

  deinit { shutdown(listener.descriptor.rawValue, Int32(SHUT_RDWR)) }

  private let requests: Requests

  /// The complete requests that arrived.
  var requestCount: Int { requests.count.load(ordering: .acquiring) }

  /// The pieces in which requests arrived.
  var pieceCount: Int { requests.pieces.load(ordering: .acquiring) }

  final class Requests: Sendable {
    let count = Atomic(0)
    let pieces = Atomic(0)
  }

  func request(_ content: String = "{\"a\":1}") -> HTTPRequest {
    HTTPRequest(url: "http://127.0.0.1:\(port)/v3", content: Array(content.utf8))
  }

  /// A port on which nobody listens.
  static func unusedPort() throws -> UInt16 {
    let (listener, port) = try listen()
    close(listener)
    return port
  }

  private static func listen() throws -> (Int32, UInt16) {
    let raw = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    guard raw != -1 else { throw WormholeSystem.Errno(rawValue: errno) }
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let failed = withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(raw, $0, length) == -1 || Glibc.listen(raw, 64) == -1
          || getsockname(raw, $0, &length) == -1
      }
    }
    guard !failed else { throw WormholeSystem.Errno(rawValue: errno) }
    return (raw, UInt16(bigEndian: address.sin_port))
  }
}

/// One connection of a client.
final class Connection: Sendable {
  private let descriptor: Mutex<SharedDescriptor?>
  private let requests: HostileServer.Requests
  private let rest = Mutex<[UInt8]>([])

  init(_ descriptor: consuming FileDescriptor, _ requests: HostileServer.Requests) {
    self.descriptor = Mutex(SharedDescriptor(descriptor))
    self.requests = requests
  }

  struct Gone: Error {}

  private func open() throws -> SharedDescriptor {
    guard let open = descriptor.withLock({ $0 }) else { throw Gone() }
    return open
  }

  /// Waits for a whole request, and returns its content.
  @discardableResult
  func readRequest() throws -> String {
    var bytes = rest.withLock { $0 }
    while true {
      let text = String(decoding: bytes, as: UTF8.self)
      if let end = text.range(of: "\r\n\r\n") {
        let header = text[..<end.lowerBound].lowercased()
        let length = header.split(separator: "\r\n").first { $0.hasPrefix("content-length:") }
          .flatMap { Int($0.dropFirst(15).drop { $0 == " " }) }
        let content = text[end.upperBound...].utf8
        if let length, content.count >= length {
          rest.withLock { $0 = Array(content.dropFirst(length)) }
          requests.count.add(1, ordering: .acquiringAndReleasing)
          return String(decoding: content.prefix(length), as: UTF8.self)
        }
      }
      bytes += try readSome()
    }
  }

  /// Reads until a text has come, of a request that goes on.
  func read(until text: String) throws {
    var bytes = rest.withLock { $0 }
    while !String(decoding: bytes, as: UTF8.self).contains(text) { bytes += try readSome() }
    rest.withLock { $0 = [] }
  }

  private func readSome() throws -> [UInt8] {
    let open = try open()
    guard try waitReadable([open.descriptor.rawValue], until: .now + .seconds(60))[0] else {
      throw Gone()
    }
    let bytes = try Program.read(from: open.descriptor.rawValue, maximumBytes: 65_536)
    guard !bytes.isEmpty else { throw Gone() }
    requests.pieces.add(1, ordering: .acquiringAndReleasing)
    return bytes
  }

  /// Waits until the client has ended the connection.
  func waitForEnd() throws {
    do {
      while true { _ = try readSome() }
    } catch is Gone {
      return
    }
  }

  func send(_ text: String) throws { try send(Array(text.utf8)) }

  func send(_ bytes: [UInt8]) throws {
    let open = try open()
    var rest = bytes[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes {
        Glibc.send(open.descriptor.rawValue, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
      }
      guard count > 0 else { throw Gone() }
      rest = rest.dropFirst(count)
    }
  }

  func answer(_ content: String, status: String = "200 OK") throws {
    try send("HTTP/1.1 \(status)\r\nContent-Length: \(content.utf8.count)\r\n\r\n\(content)")
  }

  /// One piece of an answer that has no length.
  func sendChunk(_ bytes: [UInt8]) throws {
    try send("\(String(bytes.count, radix: 16))\r\n")
    try send(bytes)
    try send("\r\n")
  }

  func beginStream(closing: Bool = false) throws {
    let close = closing ? "Connection: close\r\n" : ""
    try send("HTTP/1.1 200 OK\r\n\(close)Transfer-Encoding: chunked\r\n\r\n")
  }

  func close() { descriptor.withLock { $0 = nil } }

  /// Ends the connection as a machine does that knows nothing of it.
  func reset() throws {
    var option = linger(l_onoff: 1, l_linger: 0)
    setsockopt(
      try open().descriptor.rawValue, SOL_SOCKET, SO_LINGER, &option,
      socklen_t(MemoryLayout<linger>.size))
    close()
  }
}

extension String {
  /// The first place of a text in this one.
  fileprivate func range(of other: String) -> Range<Index>? {
    let (all, part) = (utf8, Array(other.utf8))
    var index = all.startIndex
    while index < all.endIndex {
      if all[index...].starts(with: part) {
        return index..<all.index(index, offsetBy: part.count)
      }
      index = all.index(after: index)
    }
    return nil
  }
}
