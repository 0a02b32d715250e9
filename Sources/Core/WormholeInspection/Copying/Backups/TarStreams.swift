import Wormhole
import WormholeSystem

final class TarWriter {
  private let write: ([UInt8]) throws -> Void
  private let check: (_ entries: Int, _ bytes: Int) throws -> Void
  private var hash = XXH64()
  private(set) var entries = 0
  private(set) var bytes = 0

  /// The hash of all bytes so far.
  var hashValue: UInt64 { hash.value }

  /// - Parameter check: Called before each piece with the bytes so far; its errors end the work.
  init(
    to write: @escaping ([UInt8]) throws -> Void,
    check: @escaping (_ entries: Int, _ bytes: Int) throws -> Void = { _, _ in }
  ) {
    self.write = write
    self.check = check
  }

  private func put(_ piece: [UInt8]) throws {
    try check(entries, bytes)
    piece.withUnsafeBytes { hash.update($0) }
    bytes += piece.count
    try write(piece)
  }

  func put(_ entry: TarEntry, content: [UInt8] = []) throws {
    entries += 1
    try put(entry.bytes + content + padding(after: entry))
  }

  /// Writes a file's content in pieces.
  ///
  /// - Throws: `.inputOutput` if it has become shorter than its entry says.
  func put(_ entry: TarEntry, contentOf file: borrowing FileDescriptor) throws {
    entries += 1
    try put(entry.bytes)
    var left = entry.size
    while left > 0 {
      let piece = try Program.read(
        from: file.rawValue, maximumBytes: Int(min(left, Int64(TarReader.piece))))
      guard !piece.isEmpty else { throw Errno.inputOutput }
      try put(piece)
      left -= Int64(piece.count)
    }
    try put(padding(after: entry))
  }

  private func padding(after entry: TarEntry) -> [UInt8] {
    [UInt8](repeating: 0, count: TarEntry.padding(after: entry.size))
  }

  /// Writes the two empty blocks of the end.
  func finish() throws { try put([UInt8](repeating: 0, count: 2 * TarEntry.block)) }
}

/// Reads members of a tar archive, one after another. It keeps one piece of a content at a time,
/// whatever the archive says.
final class TarReader {
  static let piece = 256 << 10

  private let read: (_ maximum: Int) throws -> [UInt8]
  private var buffer: ArraySlice<UInt8> = []
  private var hash = XXH64()
  private(set) var position = 0

  /// The hash of all bytes before the last member read.
  private(set) var hashBefore: UInt64 = XXH64().value

  /// - Parameter read: Returns at most the requested number of bytes, and none at the end.
  init(from read: @escaping (_ maximum: Int) throws -> [UInt8]) { self.read = read }

  /// Takes bytes; fewer than `count` only if the stream has fewer at once, none at its end.
  private func take(_ count: Int) throws -> ArraySlice<UInt8> {
    if buffer.isEmpty { buffer = try read(Self.piece)[...] }
    let taken = buffer.prefix(count)
    buffer = buffer.dropFirst(taken.count)
    taken.withUnsafeBytes { hash.update($0) }
    position += taken.count
    return taken
  }

  private func takeAll(_ count: Int) throws -> [UInt8] {
    var bytes: [UInt8] = []
    while bytes.count < count {
      let more = try take(count - bytes.count)
      guard !more.isEmpty else { throw TarEntry.Malformed("it ends in the middle") }
      bytes += more
    }
    return bytes
  }

  /// Returns the next member; nil at the end. Its content has to be read before the next one.
  func next() throws -> TarEntry? {
    hashBefore = hash.value
    var records: [UInt8] = []
    while true {
      switch try TarEntry.read(takeAll(TarEntry.block)) {
      case .end: return nil
      case .records(let size):
        records = try takeAll(size)
        _ = try takeAll(TarEntry.padding(after: Int64(size)))
      case .entry(var entry):
        try entry.apply(records: records)
        if entry.kind != .file, entry.size != 0 {
          throw TarEntry.Malformed("a directory, a link or a FIFO has content")
        }
        return entry
      }
    }
  }

  /// Reads the rest of the archive after its last member, which must be empty.
  func finish() throws {
    guard try next() == nil else {
      throw TarEntry.Malformed("there are members after the last one")
    }
    while true {
      let piece = try take(Self.piece)
      guard piece.allSatisfy({ $0 == 0 }) else {
        throw TarEntry.Malformed("there is something after its end")
      }
      if piece.isEmpty { return }
    }
  }

  /// Reads the content of the last member read, in pieces.
  func content(of entry: TarEntry, _ body: (ArraySlice<UInt8>) throws -> Void) throws {
    var left = entry.size
    while left > 0 {
      let piece = try take(Int(min(left, Int64(Self.piece))))
      guard !piece.isEmpty else { throw TarEntry.Malformed("it ends in the middle") }
      try body(piece)
      left -= Int64(piece.count)
    }
    _ = try takeAll(TarEntry.padding(after: entry.size))
  }

  func content(of entry: TarEntry, maximumBytes: Int64) throws -> [UInt8] {
    guard entry.size <= maximumBytes else { throw TarEntry.Malformed("a member is too large") }
    var bytes: [UInt8] = []
    try content(of: entry) { bytes += $0 }
    return bytes
  }
}
