import WormholeShims

/// The content of a transfer, and the handling of its answer; used by the transfer's thread only.
final class Transfer {
  /// A limit on header lines: a server could send them forever.
  private static let maximumHeaderBytes = 256 << 10

  private var content: [UInt8]
  /// How much of the content libcurl took.
  private var given = 0
  /// Whether more content may follow.
  private let isOpen: Bool
  /// Whether libcurl has taken all bytes, and waits for a call that says there are more.
  var isPaused = false
  private var headerBytes = 0
  /// Receives the answer as it comes; false ends the transfer, because it is too long.
  var receive: (UnsafeRawBufferPointer) -> Bool = { _ in false }
  let maximumBytes: Int
  private(set) var exceedsLimit = false
  /// Whether the header is complete. libcurl takes a connection that ends in the middle of a header
  /// for an empty answer.
  private(set) var hasWholeHeader = false
  /// The server's time of its answer; nil if it sends none.
  private(set) var date: String?

  /// - Parameter maximumBytes: The limit that `receive` keeps.
  init(sending content: [UInt8], isOpen: Bool = false, maximumBytes: Int) {
    self.content = content
    self.isOpen = isOpen
    self.maximumBytes = maximumBytes
  }

  /// Whether libcurl took some of the content, or was about to send it with the header, which it
  /// does once there is a connection.
  private(set) var contentWasTaken = false

  /// - Returns: False if it would be the second time.
  private func begin() -> Bool {
    defer { contentWasTaken = true }
    return !contentWasTaken
  }

  /// The number of bytes; nil if it is not known yet.
  var contentBytes: Int? { isOpen ? nil : content.count }

  /// Continues with more content, or none.
  func resume(_ more: [UInt8]) {
    isPaused = false
    guard !more.isEmpty else { return }
    content = Array(content[given...]) + more
    given = 0
  }

  private func give(_ room: UnsafeMutableRawBufferPointer) -> Int {
    let count = min(room.count, content.count - given)
    if count == 0, isOpen {
      isPaused = true
      return Int(ccurl_READ_PAUSE)
    }
    contentWasTaken = contentWasTaken || count > 0
    content.withUnsafeBytes {
      room.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[given..<given + count]))
    }
    given += count
    return count
  }

  // A count below all of it ends the transfer (CURLOPT_WRITEFUNCTION(3)).
  private func take(_ bytes: UnsafeRawBufferPointer, isHeader: Bool) -> Int {
    if isHeader {
      headerBytes += bytes.count
      // Each call has one line. An empty one ends the header; "100 Continue" has another after it,
      // and the content of some answers is followed by further lines.
      if bytes.first == UInt8(ascii: "\r") || bytes.first == UInt8(ascii: "\n") {
        hasWholeHeader = true
      } else if bytes.starts(with: "HTTP/".utf8) {
        hasWholeHeader = false
      } else if bytes.count <= 64, bytes.prefix(5).map({ $0 | 0x20 }).elementsEqual("date:".utf8) {
        date = String(decoding: bytes.dropFirst(5), as: UTF8.self)
      }
      exceedsLimit = headerBytes > Self.maximumHeaderBytes
    } else {
      exceedsLimit = !receive(bytes)
    }
    return exceedsLimit ? 0 : bytes.count
  }

  private static func of(_ context: UnsafeMutableRawPointer) -> Transfer {
    Unmanaged<Transfer>.fromOpaque(context).takeUnretainedValue()
  }

  static var begin: ccurl_sending {
    { context, _, _, _, _ in Transfer.of(context).begin() ? 0 : 1 }
  }

  static var give: ccurl_transfer {
    { bytes, size, count, context in
      Transfer.of(context).give(UnsafeMutableRawBufferPointer(start: bytes, count: size * count))
    }
  }

  static var take: ccurl_transfer {
    { bytes, size, count, context in
      let bytes = UnsafeRawBufferPointer(start: bytes, count: size * count)
      // libcurl reports this for an empty answer, and 0 is its whole count.
      return bytes.isEmpty ? 0 : Transfer.of(context).take(bytes, isHeader: false)
    }
  }

  static var takeHeader: ccurl_transfer {
    { bytes, size, count, context in
      let bytes = UnsafeRawBufferPointer(start: bytes, count: size * count)
      return bytes.isEmpty ? 0 : Transfer.of(context).take(bytes, isHeader: true)
    }
  }
}
