// swift-format-ignore-file: AvoidRetroactiveConformances

// The conformances are retroactive, because code written for Apple's systems needs that.
public import Foundation

// On Apple's systems `message as NSCoding` compiles for every type that has a Foundation class,
// because such a value becomes an object of that class. Code written for MMWormhole has that cast
// wherever it passes a message, so on Linux it needs these conformances.
//
// They are retroactive: if a later Foundation has them, these are redundant, not wrong.

/// What a Swift type's class does.
extension NSCoding where Self: _ObjectiveCBridgeable, Self._ObjectiveCType: NSCoding {
  /// Decodes as the type's class of Foundation does.
  public init?(coder: NSCoder) {
    guard let object = Self._ObjectiveCType(coder: coder) else { return nil }
    var value: Self?
    guard Self._conditionallyBridgeFromObjectiveC(object, result: &value), let value else {
      return nil
    }
    self = value
  }

  /// Encodes as the type's class of Foundation does.
  public func encode(with coder: NSCoder) {
    _bridgeToObjectiveC().encode(with: coder)
  }
}

extension String: @retroactive NSCoding {}
extension Array: @retroactive NSCoding {}
extension Dictionary: @retroactive NSCoding {}
extension Set: @retroactive NSCoding {}
extension Data: @retroactive NSCoding {}
extension Date: @retroactive NSCoding {}
extension URL: @retroactive NSCoding {}
extension UUID: @retroactive NSCoding {}
extension Bool: @retroactive NSCoding {}
extension Int: @retroactive NSCoding {}
extension Int8: @retroactive NSCoding {}
extension Int16: @retroactive NSCoding {}
extension Int32: @retroactive NSCoding {}
extension Int64: @retroactive NSCoding {}
extension UInt: @retroactive NSCoding {}
extension UInt8: @retroactive NSCoding {}
extension UInt16: @retroactive NSCoding {}
extension UInt32: @retroactive NSCoding {}
extension UInt64: @retroactive NSCoding {}
extension Float: @retroactive NSCoding {}
extension Double: @retroactive NSCoding {}
