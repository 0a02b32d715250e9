import Foundation
import MMWormhole
import Testing
import Wormhole
import WormholePropertyLists
import WormholeTestSupport

/// Archives that end the process of every reader, or keep it busy forever, if Foundation gets them.
///
/// They are read in another process, so that its end is a failure and not that of all tests.
@Suite("A hostile archive", .blocking)
struct HostileArchiveTests {
  let scene: AppScene
  let directory: String

  init() throws {
    scene = try AppScene()
    directory = try scene.start().mm("directory -")
  }

  /// A process to which errors do not matter: there are thousands.
  private func reader() throws -> Participant { try scene.start("PARTICIPANT_WITHOUT_HANDLER=1") }

  private static func reference(_ number: Int) -> PropertyListValue {
    ["CF$UID": .integer(Int64(number))]
  }

  private static func kind(_ name: String) -> PropertyListValue {
    ["$classname": .string(name), "$classes": [.string(name), "NSObject"]]
  }

  private func archive(_ objects: [PropertyListValue]) -> PropertyListValue {
    [
      "$archiver": "NSKeyedArchiver", "$version": 100_000, "$top": ["root": Self.reference(1)],
      "$objects": .array(["$null"] + objects),
    ]
  }

  private static let limits = {
    var limits = PropertyListLimits.standard
    limits.admitsReferences = true
    return limits
  }()

  private func put(_ archive: PropertyListValue) throws {
    try Data(archive.binaryBytes(limits: Self.limits))
      .write(to: URL(filePath: directory + "/a.archive"), options: .atomic)
  }

  /// Has each archive read from its file; a message is that, too.
  ///
  /// - Returns: How many archives were read as messages.
  private func read(_ archives: [(what: String, PropertyListValue)]) throws -> Int {
    var (reader, count) = (try reader(), 0)
    for (what, archive) in archives {
      try put(archive)
      do {
        if try reader.mm("read a") != "nil" { count += 1 }
      } catch {
        Issue.record("\(what): \(error)")
        reader = try self.reader()
      }
    }
    return count
  }

  // MARK: Fields

  private typealias Row = (name: String, fields: [String: PropertyListValue], others: [String])

  /// What each class is read from, so that one field after the other can be replaced.
  private static let classes: [Row] = {
    let text = reference(3)
    let ranges: [String: PropertyListValue] = ["NSRangeCount": 2, "NSRangeData": reference(8)]
    let range: [String: PropertyListValue] = [
      "NSRangeCount": 1, "NSLocation": 1, "NSLength": 2,
    ]
    let characters = ["NSBitmap", "NSBitmapObject", "NSRange", "NSString", "NSBuiltinID"]
    let components = ["NS.year", "NS.nanosecond", "NS.leapMonth", "NS.calendar", "NS.timezone"]
    return [
      ("NSIndexSet", ranges, []), ("NSIndexSet", range, ["NSRangeData"]),
      ("NSMutableIndexSet", ranges, []), ("NSMutableIndexSet", range, ["NSRangeData"]),
      (
        "NSIndexPath", ["NSIndexPathLength": 1, "NSIndexPathValue": 3], ["NSIndexPathData"]
      ),
      ("NSIndexPath", ["NSIndexPathLength": 2, "NSIndexPathData": reference(8)], []),
      ("NSCharacterSet", [:], characters), ("NSMutableCharacterSet", [:], characters),
      (
        "NSCalendar", ["NS.identifier": text],
        ["NS.locale", "NS.timezone", "NS.firstwkdy", "NS.mindays", "NS.gstartdate"]
      ),
      ("NSTimeZone", ["NS.name": text], ["NS.data"]), ("NSLocale", ["NS.identifier": text], []),
      ("NSUUID", ["NS.uuidbytes": .data(Data(count: 16))], []),
      ("NSURL", ["NS.relative": text], ["NS.base"]),
      ("NSDateComponents", [:], components),
      (
        "NSPersonNameComponents", ["NS.givenName": text],
        ["NS.namePrefix", "NS.nameComponentsPhonetic", "NS.namePhonetic"]
      ),
      ("NSNumber", [:], ["NS.intval", "NS.dblval", "NS.boolval", "NS.number"]),
      ("NSData", ["NS.data": .data(Data([1]))], ["NS.bytes"]),
      ("NSMutableData", ["NS.data": .data(Data([1]))], ["NS.bytes"]), ("NSNull", [:], ["NS.x"]),
      ("NSArray", ["NS.objects": [text]], []), ("NSMutableArray", ["NS.objects": [text]], []),
      ("NSSet", ["NS.objects": [text]], []), ("NSMutableSet", ["NS.objects": [text]], []),
      ("NSDictionary", ["NS.keys": [text], "NS.objects": [text]], []),
      ("NSMutableDictionary", ["NS.keys": [text], "NS.objects": [text]], []),
      ("NSOrderedSet", ["NS.object.0": text], []),
      ("NSCountedSet", ["NS.count": 1, "NS.object0": text, "NS.count0": 1], []),
      ("NSString", ["NS.string": "text"], ["NS.bytes"]),
      ("NSDate", ["NS.time": 1.5], []),
      ("NSError", ["NSDomain": text, "NSCode": 1], ["NSUserInfo"]),
      ("NSNotification", ["NS.name": text, "NS.object": text], ["NS.userinfo"]),
      ("NSRegularExpression", ["NSPattern": text, "NSOptions": 0], []),
      ("NSURLQueryItem", ["NS.name": text], ["NS.value"]),
      (
        "NSValue", ["NS.special": 4, "NS.rangeval.location": 1, "NS.rangeval.length": 2],
        ["NS.pointval", "NS.rectval", "NS.edgeval.top"]
      ),
      ("NSMeasurement", ["NS.value": 1.5], ["NS.unit"]),
      ("NSUnit", ["NS.symbol": text], []),
      ("NSUnitLength", ["NS.symbol": text], ["NS.converter"]),
      ("NSUnitConverterLinear", ["NS.coefficient": 1.5], ["NS.constant"]),
    ]
  }()

  private static let values: [PropertyListValue] = {
    let numbers = [-1, 0, 1, 3, 1 << 31, 65 << 32 | 3, .max, .min]
      .map { PropertyListValue.integer($0) }
    let reals = [.infinity, .nan, 1e300, -1e300].map { PropertyListValue.real($0) }
    let bytes = [
      [], Array(repeating: 0xFF, count: 8), Array(repeating: 0xFF, count: 16),
      Array(repeating: 0x80, count: 40),
    ].map { PropertyListValue.data(Data($0 as [UInt8])) }
    let references = [0, 3, 4, 6, 8, 9, 10, 11, 12].map(reference)
    return numbers + reals + bytes + references + [[references[8]], true, "", "x"]
  }()

  private func archive(
    of name: String, _ fields: [String: PropertyListValue]
  ) -> PropertyListValue {
    let text = Self.reference(3)
    var object = PropertyListValue.dictionary(fields)
    object["$class"] = Self.reference(2)
    // One range that ends beyond all numbers, and one of too many digits.
    let endless = Data([5, 1] + Array(repeating: 0xFF, count: 8) + [0x7F, 2])
    return archive([
      object, Self.kind(name), "text", ["$class": Self.reference(5), "NS.objects": [text]],
      Self.kind("NSArray"),
      ["$class": Self.reference(7), "NS.keys": [text], "NS.objects": [text]],
      Self.kind("NSDictionary"), .data(Data([5, 1, 0x85, 2, 1])), 7, .data(endless),
      .data(Data(Array(repeating: 0x80, count: 13) + [1, 1, 2, 2])),
      // A unit without a text, which is not decoded.
      ["$class": Self.reference(13), "NS.symbol": 8], Self.kind("NSUnit"),
    ])
  }

  @Test("of any class, with any value in the place of a field, is read or refused")
  func fields() throws {
    var archives: [(String, PropertyListValue)] = []
    for (name, fields, others) in Self.classes {
      archives.append((name, archive(of: name, fields)))
      for field in fields.keys.sorted() + others {
        for value in Self.values {
          let changed = fields.merging([field: value]) { $1 }
          archives.append(("\(name) \(field) \(value)", archive(of: name, changed)))
        }
      }
    }
    #expect(try read(archives) > 300)
  }

  @Test("of a set with another number of ranges than its data has is refused")
  func ranges() throws {
    let set = NSMutableIndexSet(indexesIn: NSRange(location: 3, length: 4))
    set.add(in: NSRange(location: 300, length: 7_000))
    set.add(in: NSRange(location: 1 << 62, length: 1 << 60))
    let archiver = NSKeyedArchiver(requiringSecureCoding: false)
    archiver.encode(set, forKey: NSKeyedArchiveRootObjectKey)
    archiver.finishEncoding()
    let good = try PropertyListValue(data: archiver.encodedData, limits: Self.limits)
    #expect(try read([("good", good)]) == 1)
    var archives: [(String, PropertyListValue)] = []
    for count in [-1, 4, 1_000, 1 << 40, Int.max] {
      var objects = try #require(good["$objects"]?.arrayValue)
      let index = try #require(objects.firstIndex { $0["NSRangeCount"] != nil })
      objects[index]["NSRangeCount"] = .integer(Int64(count))
      var archive = good
      archive["$objects"] = .array(objects)
      archives.append(("\(count) ranges", archive))
    }
    #expect(try read(archives) == 0)
  }

  @Test("that only hints at a class of Foundation is refused as well")
  func hints() throws {
    var archives: [(String, PropertyListValue)] = []
    for (name, fields) in [
      ("NSIndexSet", ["NSRangeCount": .integer(.max)]), ("NSCharacterSet", ["NSRange": -1]),
      ("NSSet", ["NS.objects": []]),
    ] as [(String, [String: PropertyListValue])] {
      var kind = Self.kind("App.None")
      kind["$classhints"] = [.string(name)]
      var object = PropertyListValue.dictionary(fields)
      object["$class"] = Self.reference(2)
      archives.append((name, archive([object, kind])))
    }
    #expect(try read(archives) == 0)
  }

  // MARK: References

  /// Two chains, each link of which refers to the next one twice, in a collection.
  private func chains(_ name: String, depth: Int) -> PropertyListValue {
    var objects: [PropertyListValue] = [[:], Self.kind(name), Self.kind("NSArray"), "x"]
    let tops = (0..<2).map { _ in
      (0..<depth).reduce(4) { next, _ in
        let both = PropertyListValue([Self.reference(next), Self.reference(next)])
        objects.append(["$class": Self.reference(3), "NS.objects": both])
        return objects.count
      }
    }.map(Self.reference)
    objects[0] = ["$class": Self.reference(2)]
    switch name {
    case "NSDictionary":
      objects[0]["NS.keys"] = .array(tops)
      objects[0]["NS.objects"] = [Self.reference(4), Self.reference(4)]
    case "NSOrderedSet":
      for (index, top) in tops.enumerated() { objects[0]["NS.object.\(index)"] = top }
    case "NSCountedSet":
      objects[0]["NS.count"] = 2
      for (index, top) in tops.enumerated() {
        objects[0]["NS.object\(index)"] = top
        objects[0]["NS.count\(index)"] = 1
      }
    default: objects[0]["NS.objects"] = .array(tops)
    }
    return archive(objects)
  }

  @Test(
    "whose objects share others is read, or refused if they are too many once each counts",
    arguments: ["NSArray", "NSSet", "NSDictionary", "NSOrderedSet", "NSCountedSet"])
  func shared(name: String) throws {
    // An array cannot be the key of a dictionary here.
    let isRead = name != "NSDictionary"
    #expect(try read([("5", chains(name, depth: 5))]) == (isRead ? 1 : 0))
    #expect(try read([20, 40, 63, 120].map { ("\($0)", chains(name, depth: $0)) }) == 0)
    // As a message that another program has sent, too.
    let container = try SharedContainer(url: URL(filePath: scene.container))
    for depth in [20, 45, 120] {
      try FileManager.default.removeItem(atPath: directory + "/a.archive")
      try container.value("wormhole/a").replace(with: chains(name, depth: depth))
      #expect(try reader().mm("read a") == "nil")
      try put(chains(name, depth: 5))
    }
  }

  @Test("whose objects share one long text is refused if it is too much once each counts")
  func sharedText() throws {
    let text = PropertyListValue.string(String(repeating: "x", count: 1 << 20))
    let list = PropertyListValue.array(Array(repeating: Self.reference(3), count: 1_000))
    let archive = archive([
      ["$class": Self.reference(2), "NS.objects": list], Self.kind("NSArray"), text,
    ])
    #expect(try read([("text", archive)]) == 0)
  }

  // MARK: Sets

  /// A set, or a dictionary with these keys.
  private func collection(
    _ name: String, of elements: [PropertyListValue], _ more: [PropertyListValue] = []
  ) -> PropertyListValue {
    let references = PropertyListValue.array((0..<elements.count).map { Self.reference(3 + $0) })
    var object: PropertyListValue = ["$class": Self.reference(2)]
    if name == "NSDictionary" { object["NS.keys"] = references }
    object["NS.objects"] = references
    return archive([object, Self.kind(name)] + elements + more)
  }

  /// Texts with one hash in Foundation, which multiplies it by 257 for each letter.
  private func equallyHashed(_ digits: Int) -> [PropertyListValue] {
    (0..<1 << digits).map { number -> PropertyListValue in
      let pairs = ["\u{400}\u{600}", "\u{401}\u{4FF}"]
      return .string((0..<digits).map { pairs[number >> $0 & 1] }.joined())
    }
  }

  @Test(
    "with many objects of one hash is refused, and one with few, or many others, is read",
    arguments: ["NSSet", "NSMutableSet", "NSDictionary"])
  func equalHashes(name: String) throws {
    let others = (0..<1_100).flatMap { number -> [PropertyListValue] in
      [.string("text \(number)"), .integer(number), .real(Double(number) + 0.5)]
    }
    #expect(try read([("few", collection(name, of: equallyHashed(8)))]) == 1)
    #expect(try read([("others", collection(name, of: others))]) == 1)
    #expect(try read([("many", collection(name, of: equallyHashed(10)))]) == 0)
  }

  @Test("with a set of many arrays, or of few large ones, is refused")
  func arrays() throws {
    for (count, length, isRead) in [(200, 1, true), (600, 1, false), (60, 300, false)] {
      let arrays = (0..<count).map { number -> PropertyListValue in
        let same = Array(repeating: Self.reference(3 + count + 1), count: length - 1)
        return [
          "$class": Self.reference(3 + count),
          "NS.objects": .array(same + [Self.reference(3 + count + 1 + number)]),
        ]
      }
      let numbers = (0..<count).map { PropertyListValue.integer(Int64($0)) }
      let set = collection("NSSet", of: arrays, [Self.kind("NSArray")] + numbers)
      #expect(try read([("\(count)", set)]) == (isRead ? 1 : 0))
    }
  }

  @Test("of a counted set of many objects with large counts is refused")
  func counts() throws {
    for (count, isRead) in [(50, true), (1_100, false)] {
      var set: PropertyListValue = ["$class": Self.reference(2)]
      set["NS.count"] = .integer(Int64(count))
      for number in 0..<count {
        set["NS.object\(number)"] = Self.reference(3 + number)
        set["NS.count\(number)"] = 1_000
      }
      let numbers = (0..<count).map { PropertyListValue.integer(Int64($0)) }
      let archive = archive([set, Self.kind("NSCountedSet")] + numbers)
      #expect(try read([("\(count)", archive)]) == (isRead ? 1 : 0))
    }
  }

  @Test("whose index sets have too many ranges in all is refused, also if they share them")
  func sharedRanges() throws {
    // Each begins two after the one before.
    let number = { (number: Int) in
      [UInt8(number & 0x7F | 0x80), UInt8(number >> 7 & 0x7F | 0x80), UInt8(number >> 14)]
    }
    let data = Data((0..<30_000).flatMap { number(2 * $0) + [1] })
    for (count, isRead) in [(2, true), (4, false)] {
      let set: PropertyListValue = [
        "$class": Self.reference(3 + count), "NSRangeCount": 30_000,
        "NSRangeData": Self.reference(4 + count),
      ]
      let list = collection(
        "NSArray", of: Array(repeating: set, count: count),
        [Self.kind("NSIndexSet"), .data(data)])
      #expect(try read([("\(count)", list)]) == (isRead ? 1 : 0))
    }
  }
}
