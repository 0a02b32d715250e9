import Foundation
import Testing
import WormholePropertyLists
import WormholeTestSupport

@Suite("Values and the objects of Apple's interfaces", .blocking)
struct ObjectBridgeTests {
  @Test("Swift values of every accepted type")
  func swiftValues() throws {
    let date = Date(timeIntervalSinceReferenceDate: 1)
    let scalars: [(Any, PropertyListValue)] = [
      ("text", "text"), (Substring("text"), "text"), (5, 5), (Int8(-5), -5), (UInt8(5), 5),
      (Int16(5), 5), (UInt16(5), 5), (Int32(5), 5), (UInt32(5), 5), (Int64(5), 5), (UInt(5), 5),
      (UInt64.max, .unsigned(.max)), (2.5, 2.5), (Float(2.5), 2.5), (true, true), (1.0, 1.0),
      (date, .date(date)), (Data([1]), .data(Data([1]))), (Int128(5), 5),
      (CGFloat(2.5), 2.5), (Decimal(5), 5), (Decimal(string: "-2.5") as Any, -2.5),
    ]
    let list: [Any] = [1, "a", true]
    let containers: [(Any, PropertyListValue)] = [
      (list, [1, "a", true]), (["a": 1], ["a": 1]), ([String: Any](), .dictionary([:])),
      ([Any](), .array([])), (Optional(5) as Any, 5), (Optional(Optional("x")) as Any, "x"),
      (PropertyListValue.integer(5), 5), (["a": PropertyListValue.boolean(true)], ["a": true]),
      ([["a": [Float(1)]]], [["a": [1.0]]]), ([AnyHashable("k"): 1], ["k": 1]),
    ]
    for (object, expected) in scalars + containers {
      #expect(try PropertyListValue(propertyList: object) == expected, "\(type(of: object))")
    }
  }

  @Test("Foundation's classes; a boolean stays a boolean and 1.0 a real")
  func classes() throws {
    let cases: [(Any, PropertyListValue)] = [
      (NSNumber(value: true), true), (NSNumber(value: false), false), (NSNumber(value: 1), 1),
      (NSNumber(value: 0), 0), (NSNumber(value: Int8(1)), 1), (NSNumber(value: UInt8(255)), 255),
      (NSNumber(value: -7), -7), (NSNumber(value: UInt64.max), .unsigned(.max)),
      (NSNumber(value: 1.0), 1.0), (NSNumber(value: 1.5), 1.5), (NSNumber(value: 1e20), 1e20),
      (NSNumber(value: Double.infinity), .real(.infinity)), (NSNumber(value: Float(0.5)), 0.5),
      (NSString(string: "x"), "x"), (NSMutableString(string: "5"), "5"),
      (NSData(data: Data([1])), .data(Data([1]))),
      (NSDate(timeIntervalSinceReferenceDate: 1), .date(Date(timeIntervalSinceReferenceDate: 1))),
      (NSArray(array: [NSNumber(value: true), 1]), [true, 1]),
      (NSDictionary(dictionary: ["a": NSNumber(value: 1)]), ["a": 1]),
      (Optional(NSNumber(value: true)) as Any, true), (["n": NSNumber(value: 2)], ["n": 2]),
    ]
    for (object, expected) in cases {
      #expect(try PropertyListValue(propertyList: object) == expected, "\(type(of: object))")
    }
  }

  @Test("Other types are refused with the path that leads to them")
  func refusals() {
    let cases: [(Any, String, PropertyListError.Code)] = [
      (["reply": ["items": [1, 2, Set([1])]]], "reply.items[2]", .unsupportedType),
      ([[NSNull()]], "[0][0]", .unsupportedType), (UUID(), "", .unsupportedType),
      (["a": Optional<Int>.none as Any], "a", .unsupportedType),
      ([1: "a"] as [Int: String], "", .unsupportedType), ([Int128.max], "[0]", .unrepresentable),
      (NSDictionary(dictionary: [1: "a"]), "", .unsupportedType), (NSSet(), "", .unsupportedType),
    ]
    for (object, path, code) in cases {
      let error = #expect(throws: PropertyListError.self) {
        try PropertyListValue(propertyList: object)
      }
      #expect(error?.code == code && error?.position == .keyPath(path), "\(object)")
    }
    var deep: Any = "x"
    for _ in 0..<2_000 { deep = [deep] }
    let error = #expect(throws: PropertyListError.self) {
      try PropertyListValue(propertyList: deep)
    }
    #expect(error?.code == .tooDeep)
  }

  @Test("Objects made from a value become the same value again")
  func roundTrip() throws {
    // Foundation's numbers have only one NaN.
    var random = RandomValues(
      seed: TestSeed.next("PLIST_SEED").value, RandomProfile(nanPayloads: false))
    for value in EdgeValues.all + (0..<100).map({ _ in random.value() }) {
      #expect(try PropertyListValue(propertyList: value.propertyListObject) == value)
    }
  }

  // A test cannot observe a process without Foundation, because it has Foundation itself.
  @Test("A number or a boolean casts to every type that holds it, as on Apple's platforms")
  func numbers() throws {
    let integer = PropertyListValue.integer(5).propertyListObject
    #expect(integer as? Int == 5 && integer as? UInt8 == 5 && integer as? Int64 == 5)
    #expect(integer as? Double == 5 && integer as? Float == 5)
    let negative = PropertyListValue.integer(-300).propertyListObject
    #expect(negative as? Int16 == -300 && negative as? Int8 == nil && negative as? UInt == nil)
    #expect(PropertyListValue.unsigned(5).propertyListObject as? Int == 5)
    let large = PropertyListValue.unsigned(.max).propertyListObject
    #expect(large as? UInt64 == .max && large as? Int == nil)
    let real = PropertyListValue.real(1.5).propertyListObject
    #expect(real as? Double == 1.5 && real as? Float == 1.5 && real as? Int == nil)
    let list = PropertyListValue.array([1, 2]).propertyListObject
    #expect(list as? [Double] == [1, 2] && list as? [Int32] == [1, 2])
    let boolean = PropertyListValue.boolean(true).propertyListObject
    #expect(boolean as? Bool == true && boolean as? Int == 1 && boolean as? Double == 1)
    let booleans = PropertyListValue.array([true, false]).propertyListObject
    #expect(booleans as? [Bool] == [true, false] && booleans as? [Int] == [1, 0])
  }
}
