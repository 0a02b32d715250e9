/// The 64-bit hash of the xxHash family, by its specification
/// (https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md): detects damage as fast as
/// memory is read, but does not protect against deliberate collisions.
package struct XXH64: Sendable {
  private static let prime1: UInt64 = 0x9E37_79B1_85EB_CA87
  private static let prime2: UInt64 = 0xC2B2_AE3D_27D4_EB4F
  private static let prime3: UInt64 = 0x1656_67B1_9E37_79F9
  private static let prime4: UInt64 = 0x85EB_CA77_C2B2_AE63
  private static let prime5: UInt64 = 0x27D4_EB2F_1656_67C5

  private static let stripe = 32

  private let seed: UInt64
  private var lanes: (UInt64, UInt64, UInt64, UInt64)
  private var count: UInt64 = 0
  /// The bytes since the last whole stripe; fewer than 32.
  private var rest: [UInt8] = []

  package init(seed: UInt64 = 0) {
    self.seed = seed
    lanes = (seed &+ Self.prime1 &+ Self.prime2, seed &+ Self.prime2, seed, seed &- Self.prime1)
  }

  package static func checksum(of bytes: [UInt8]) -> UInt64 {
    var hash = XXH64()
    bytes.withUnsafeBytes { hash.update($0) }
    return hash.value
  }

  package mutating func update(_ bytes: UnsafeRawBufferPointer) {
    count &+= UInt64(bytes.count)
    var bytes = bytes
    if !rest.isEmpty {
      let missing = min(Self.stripe - rest.count, bytes.count)
      rest += bytes[..<missing]
      bytes = UnsafeRawBufferPointer(rebasing: bytes[missing...])
      guard rest.count == Self.stripe else { return }
      rest.withUnsafeBytes { lanes = Self.stripes(of: $0, lanes) }
      rest.removeAll(keepingCapacity: true)
    }
    let whole = bytes.count & ~(Self.stripe - 1)
    if whole > 0 {
      lanes = Self.stripes(of: UnsafeRawBufferPointer(rebasing: bytes[..<whole]), lanes)
    }
    rest += bytes[whole...]
  }

  package var value: UInt64 {
    var hash = count >= UInt64(Self.stripe) ? converged : seed &+ Self.prime5
    hash &+= count
    rest.withUnsafeBytes { bytes in
      var offset = 0
      while offset + 8 <= bytes.count {
        hash ^= Self.round(0, Self.word(bytes, offset))
        hash = Self.rotate(hash, 27) &* Self.prime1 &+ Self.prime4
        offset += 8
      }
      if offset + 4 <= bytes.count {
        let half = UInt32(
          littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt32.self))
        hash ^= UInt64(half) &* Self.prime1
        hash = Self.rotate(hash, 23) &* Self.prime2 &+ Self.prime3
        offset += 4
      }
      while offset < bytes.count {
        hash ^= UInt64(bytes[offset]) &* Self.prime5
        hash = Self.rotate(hash, 11) &* Self.prime1
        offset += 1
      }
    }
    hash = (hash ^ (hash >> 33)) &* Self.prime2
    hash = (hash ^ (hash >> 29)) &* Self.prime3
    return hash ^ (hash >> 32)
  }

  private var converged: UInt64 {
    var hash =
      Self.rotate(lanes.0, 1) &+ Self.rotate(lanes.1, 7) &+ Self.rotate(lanes.2, 12)
      &+ Self.rotate(lanes.3, 18)
    for lane in [lanes.0, lanes.1, lanes.2, lanes.3] {
      hash = (hash ^ round(lane)) &* Self.prime1 &+ Self.prime4
    }
    return hash
  }

  private func round(_ lane: UInt64) -> UInt64 { Self.round(0, lane) }

  private static func stripes(
    of bytes: UnsafeRawBufferPointer, _ start: (UInt64, UInt64, UInt64, UInt64)
  ) -> (UInt64, UInt64, UInt64, UInt64) {
    var lanes = start
    var offset = 0
    while offset < bytes.count {
      lanes.0 = round(lanes.0, word(bytes, offset))
      lanes.1 = round(lanes.1, word(bytes, offset &+ 8))
      lanes.2 = round(lanes.2, word(bytes, offset &+ 16))
      lanes.3 = round(lanes.3, word(bytes, offset &+ 24))
      offset &+= stripe
    }
    return lanes
  }

  @inline(__always)
  private static func round(_ lane: UInt64, _ input: UInt64) -> UInt64 {
    rotate(lane &+ input &* prime2, 31) &* prime1
  }

  @inline(__always)
  private static func rotate(_ value: UInt64, _ count: UInt64) -> UInt64 {
    value &<< count | value &>> (64 &- count)
  }

  @inline(__always)
  private static func word(_ bytes: UnsafeRawBufferPointer, _ offset: Int) -> UInt64 {
    UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
  }
}
