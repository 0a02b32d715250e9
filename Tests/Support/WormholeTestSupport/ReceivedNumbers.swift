import Foundation

/// Numbers of each kind as one process sends them, and the casts with which another reads them, as
/// on Apple's platforms.
public enum ReceivedNumbers {
  /// The sent numbers.
  public static var sent: [String: Any] {
    [
      "int": 3, "negative": -300, "byte": UInt8(7), "large": UInt64.max, "float": Float(1.5),
      "double": 0.1, "whole": 2.0, "ints": [1, 2], "reals": [0.5, 1.5], "counts": ["a": 1],
      "yes": true, "one": 1,
    ]
  }

  /// Returns the casts of received numbers that differ from Apple's platforms; "" for none.
  public static func findings(in received: [String: Any]) -> String {
    let checks: [(String, Bool)] = [
      ("int as Int", received["int"] as? Int == 3),
      ("int as Double", received["int"] as? Double == 3),
      ("int as Float", received["int"] as? Float == 3),
      ("int as Int32", received["int"] as? Int32 == 3),
      ("int as UInt8", received["int"] as? UInt8 == 3),
      ("int as NSNumber", (received["int"] as? NSNumber)?.intValue == 3),
      ("int as String", received["int"] as? String == nil),
      ("negative as Int16", received["negative"] as? Int16 == -300),
      ("negative as Int8", received["negative"] as? Int8 == nil),
      ("negative as UInt", received["negative"] as? UInt == nil),
      ("byte as UInt8", received["byte"] as? UInt8 == 7),
      ("byte as Int", received["byte"] as? Int == 7),
      ("large as UInt64", received["large"] as? UInt64 == .max),
      ("large as Int", received["large"] as? Int == nil),
      ("float as Float", received["float"] as? Float == 1.5),
      ("float as Double", received["float"] as? Double == 1.5),
      ("double as Double", received["double"] as? Double == 0.1),
      ("double as Int", received["double"] as? Int == nil),
      ("whole as Double", received["whole"] as? Double == 2),
      ("whole as Int", received["whole"] as? Int == 2),
      ("ints as [Int]", received["ints"] as? [Int] == [1, 2]),
      ("ints as [Double]", received["ints"] as? [Double] == [1, 2]),
      ("ints as [Int32]", received["ints"] as? [Int32] == [1, 2]),
      ("reals as [Double]", received["reals"] as? [Double] == [0.5, 1.5]),
      ("reals as [Float]", received["reals"] as? [Float] == [0.5, 1.5]),
      ("reals as [Int]", received["reals"] as? [Int] == nil),
      ("counts as [String: Int]", received["counts"] as? [String: Int] == ["a": 1]),
      ("counts as [String: Double]", received["counts"] as? [String: Double] == ["a": 1]),
      ("yes as Bool", received["yes"] as? Bool == true),
      ("yes as Int", received["yes"] as? Int == 1),
      ("yes as Double", received["yes"] as? Double == 1),
      ("switch int", kind(received["int"]) == "Int"),
      ("switch double", kind(received["double"]) == "Double"),
      ("switch yes", kind(received["yes"]) == "Int"),
      ("JSON", json(received) == json(sent)),
    ]
    return checks.filter { !$0.1 }.map(\.0).joined(separator: ", ")
  }

  private static func kind(_ object: Any?) -> String {
    switch object {
    case is Int: "Int"
    case is Double: "Double"
    case is Bool: "Bool"
    default: "none"
    }
  }

  /// For numbers with only one spelling in JSON: 2.0 is "2" there, like an integer.
  private static func json(_ objects: [String: Any]) -> String {
    let kept = objects.filter { sent[$0.key] != nil && $0.key != "whole" }
    do {
      let bytes = try JSONSerialization.data(withJSONObject: kept, options: .sortedKeys)
      return String(decoding: bytes, as: UTF8.self)
    } catch {
      return "\(error)"
    }
  }
}
