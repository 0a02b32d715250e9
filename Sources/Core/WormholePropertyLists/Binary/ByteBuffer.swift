/// Bytes that are appended one by one: an array checks each time whether it is shared, which costs
/// more than the bytes of a small property list.
package struct ByteBuffer: ~Copyable {
  private var start: UnsafeMutablePointer<UInt8>
  private var capacity: Int
  package private(set) var count = 0

  /// - Parameter capacity: The number of bytes for which it has room without growing; at least 1.
  package init(capacity: Int) {
    self.capacity = capacity
    start = .allocate(capacity: capacity)
  }

  deinit { start.deallocate() }

  /// A copy of the bytes, in an array of exactly their size.
  package var bytes: [UInt8] {
    // `Array(unsafeUninitializedCapacity:)` looks up its type each time, which takes longer.
    var bytes: [UInt8] = []
    bytes.reserveCapacity(count)
    bytes.append(contentsOf: UnsafeBufferPointer(start: start, count: count))
    return bytes
  }

  /// Makes room for more bytes at once, because moving large content takes long.
  mutating func reserve(_ more: Int) {
    if more > capacity - count { grow(max(2 * count, count + more + (count + more) / 64)) }
  }

  private mutating func grow(_ larger: Int) {
    let moved = UnsafeMutablePointer<UInt8>.allocate(capacity: larger)
    moved.moveInitialize(from: start, count: count)
    start.deallocate()
    (start, capacity) = (moved, larger)
  }

  /// Returns the place where the caller writes bytes now.
  @inline(__always)
  private mutating func room(for more: Int) -> UnsafeMutablePointer<UInt8> {
    if more > capacity - count { grow(max(2 * capacity, count + more)) }
    defer { count += more }
    return start + count
  }

  package mutating func append(_ byte: UInt8) { room(for: 1).pointee = byte }

  package mutating func append(_ bytes: UnsafeBufferPointer<UInt8>) {
    guard let first = bytes.baseAddress else { return }
    room(for: bytes.count).update(from: first, count: bytes.count)
  }

  package mutating func append(_ bytes: [UInt8]) { bytes.withUnsafeBufferPointer { append($0) } }

  mutating func append(_ bytes: ArraySlice<UInt8>) { bytes.withUnsafeBufferPointer { append($0) } }

  mutating func append(_ bytes: UnsafeRawBufferPointer) {
    bytes.withMemoryRebound(to: UInt8.self) { append($0) }
  }

  mutating func append(zeros number: Int) { room(for: number).update(repeating: 0, count: number) }

  /// Appends all eight bytes of a number, most significant byte first.
  package mutating func append(bigEndian number: UInt64) {
    UnsafeMutableRawPointer(room(for: 8)).storeBytes(of: number.bigEndian, as: UInt64.self)
  }

  /// Appends all four bytes of a number, most significant byte first.
  package mutating func append(bigEndian number: UInt32) {
    UnsafeMutableRawPointer(room(for: 4)).storeBytes(of: number.bigEndian, as: UInt32.self)
  }

  /// Appends the low `width` bytes of a number, most significant byte first.
  mutating func append(_ number: UInt64, width: Int) {
    Self.write(number, width: width, to: room(for: width))
  }

  /// Writes the low `width` bytes of a number over others.
  mutating func put(_ number: UInt64, width: Int, at place: Int) {
    precondition(place >= 0 && place + width <= count, "the place is within the bytes")
    Self.write(number, width: width, to: start + place)
  }

  @inline(__always)
  private static func write(_ number: UInt64, width: Int, to place: UnsafeMutablePointer<UInt8>) {
    if width == 1 {
      place.pointee = UInt8(truncatingIfNeeded: number)
    } else {
      // The low bytes come last.
      withUnsafeBytes(of: number.bigEndian) { bytes in
        UnsafeMutableRawBufferPointer(start: place, count: width)
          .copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes[(8 - width)...]))
      }
    }
  }
}
