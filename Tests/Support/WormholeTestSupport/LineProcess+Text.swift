import WormholeSystem
import WormholeToolkit

extension LineProcess {
  /// Returns what the program prints next, even if it is not a whole line; but only whole
  /// characters, because a pipe may deliver one in two pieces.
  public func text(until deadline: ContinuousClock.Instant) throws -> String {
    let text = try read(until: deadline) { pending in
      let whole = pending.count - Self.unfinishedBytes(at: pending)
      guard whole > 0 else { return nil }
      defer { pending.removeSubrange(..<whole) }
      return String(decoding: pending[..<whole], as: UTF8.self)
    }
    guard let text else {
      throw Failure(description: "process \(processID) printed nothing in time")
    }
    return text
  }

  /// Returns how many bytes at the end begin a UTF-8 character that is not complete.
  private static func unfinishedBytes(at bytes: [UInt8]) -> Int {
    for (index, byte) in bytes.suffix(3).reversed().enumerated() where byte & 0xC0 != 0x80 {
      let length = byte < 0xC0 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4
      return index + 1 < length ? index + 1 : 0
    }
    return 0
  }
}
