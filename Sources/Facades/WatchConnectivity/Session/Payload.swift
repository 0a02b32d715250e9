import Foundation
import WormholePropertyLists

/// Payloads, between the objects of Apple's interface and property lists.
///
/// The limits are those of Apple's private constants `WCPayloadSizeLimitMessage`, `…UserInfo` and
/// `…ApplicationContext`, counted in bytes of the binary property list.
enum Payload {
  static let maximumMessageBytes = 65_536
  static let maximumUserInfoBytes = 65_536
  static let maximumContextBytes = 262_144

  /// - Throws: `WCError`: `payloadUnsupportedTypes`, naming the key; `payloadTooLarge`.
  static func value(_ dictionary: [String: Any], maximumBytes: Int) throws(WCError)
    -> PropertyListValue
  {
    let value: PropertyListValue
    let bytes: Int
    do throws(PropertyListError) {
      value = try PropertyListValue(propertyList: dictionary)
      // Encoded here only if the bytes have to be counted exactly.
      let footprint = value.footprint
      guard footprint.mostFileBytes > maximumBytes || !footprint.isSmall else { return value }
      bytes = try value.binaryBytes().count
    } catch {
      throw WCError(.payloadUnsupportedTypes, reason: "\(error).", underlying: error)
    }
    try check(bytes, maximumBytes)
    return value
  }

  /// - Throws: `WCError`: `payloadTooLarge`.
  static func value(_ data: Data) throws(WCError) -> PropertyListValue {
    try check(data.count, maximumMessageBytes)
    return .data(data)
  }

  /// The objects of a dictionary; nil for any other value.
  @Sendable static func objects(_ value: PropertyListValue?) -> [String: Any]? {
    guard case .dictionary(let dictionary) = value else { return nil }
    return dictionary.mapValues(\.propertyListObject)
  }

  private static func check(_ bytes: Int, _ maximum: Int) throws(WCError) {
    guard bytes <= maximum else {
      throw WCError(
        .payloadTooLarge,
        reason: "It has \(bytes) bytes, more than the limit of \(maximum); transfer it as a file.")
    }
  }
}
