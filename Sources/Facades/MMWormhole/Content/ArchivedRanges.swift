import Foundation
import WormholePropertyLists

/// The ranges in archived sets of numbers and of characters. Foundation on Linux ends the process
/// at one that no set can have.
enum ArchivedRanges {
  /// Whether an index set's fields are one range, or a number of ranges and that many in data.
  @Sendable
  static func areIn(_ fields: ArchivedObjects.Fields, _ objects: ArchivedObjects) -> Bool {
    switch fields["NSRangeCount"]?.intValue {
    case nil: return false
    case 0: return true
    case 1:
      guard let location = fields["NSLocation"]?.intValue,
        let length = fields["NSLength"]?.intValue
      else { return false }
      return isRange(location, length, after: 0)
    case let count?:
      guard count >= 2, let data = objects.data(fields["NSRangeData"]) else { return false }
      return areRanges([UInt8](data)[...], count: count)
    }
  }

  /// Pairs of a location and a length, in ascending order.
  private static func areRanges(_ bytes: ArraySlice<UInt8>, count: Int) -> Bool {
    var (rest, end) = (bytes, 0)
    for _ in 0..<count {
      guard let location = number(from: &rest), let length = number(from: &rest),
        isRange(location, length, after: end)
      else { return false }
      end = location + length
    }
    return rest.isEmpty
  }

  /// Takes a number written seven bits at a time, lowest first; each byte but the last has its high
  /// bit set.
  private static func number(from bytes: inout ArraySlice<UInt8>) -> Int? {
    var (number, shift) = (0, 0)
    while shift < Int.bitWidth - 1, let byte = bytes.popFirst() {
      number |= Int(byte & 0x7F) << shift
      if byte < 0x80 { return number }
      shift += 7
    }
    return nil
  }

  private static func isRange(_ location: Int, _ length: Int, after end: Int) -> Bool {
    // The maximum number means that there is no index.
    location >= end && length > 0 && length < Int.max - location
  }

  /// Whether the range in a character set's fields, if there is one, is a Unicode range: its
  /// location in the high half of a number, and its length in the low one.
  @Sendable
  static func isOfCharacters(_ fields: ArchivedObjects.Fields, _ objects: ArchivedObjects) -> Bool {
    guard let range = fields["NSRange"] else { return true }
    guard let packed = range.intValue, packed >= 0 else { return false }
    let (location, length) = (packed >> 32, packed & 0xFFFF_FFFF)
    return location <= 0x10_FFFF && location + length <= 0x11_0000
  }
}
