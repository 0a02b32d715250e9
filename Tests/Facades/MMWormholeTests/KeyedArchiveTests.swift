import Foundation
import Synchronization
import Testing
import Wormhole
import WormholeMessageClients
import WormholePropertyLists
import WormholeTestSupport

@testable import MMWormhole

/// A list whose elements follow one another. At the top level, because only such a class has a name.
final class Node: NSObject, NSCoding {
  var next: Node?
  override init() {}
  init?(coder: NSCoder) { next = coder.decodeObject(forKey: "next") as? Node }
  func encode(with coder: NSCoder) { coder.encode(next, forKey: "next") }
}

/// An object of the program with any content.
final class Envelope: NSObject, NSCoding {
  let content: Any?
  init(_ content: Any?) { self.content = content }
  init?(coder: NSCoder) { content = coder.decodeObject(forKey: "content") }
  func encode(with coder: NSCoder) { coder.encode(content, forKey: "content") }
}

/// An object whose equality is its own, and whose hash is not.
final class Unhashed: NSObject, NSCoding {
  let name: String
  init(_ name: String) { self.name = name }
  init?(coder: NSCoder) { name = coder.decodeObject(forKey: "name") as? String ?? "" }
  func encode(with coder: NSCoder) { coder.encode(name, forKey: "name") }
  override func isEqual(_ object: Any?) -> Bool { (object as? Unhashed)?.name == name }
}

/// Foundation on Linux ends the process at some archives.
@Suite("An archived message", .blocking)
struct KeyedArchiveTests {
  let directory: TemporaryDirectory
  let container: SharedContainer
  let wormhole: MMWormhole
  let errors = Errors()

  init() throws {
    directory = try TemporaryDirectory()
    container = try directory.container()
    wormhole = MMWormhole(container: container)
    wormhole.errorHandler = { [errors] in errors.add($0) }
  }

  /// Of this file only.
  private final class Nested: NSObject, NSCoding {
    override init() {}
    init?(coder: NSCoder) {}
    func encode(with coder: NSCoder) {}
  }

  @Test("is read exactly as it was passed")
  func exact() throws {
    let date = Date(timeIntervalSinceReferenceDate: 0.1 + 0.2)
    let alarm = Alarm(title: "a <&> é \u{1F600}", minutes: -7, fireDate: date)
    wormhole.passMessageObject(
      ["alarm": alarm, "url": URL(fileURLWithPath: "/a")], identifier: "a")
    let message = wormhole.message(withIdentifier: "a") as? [String: Any]
    let read = message?["alarm"] as? Alarm
    #expect(read?.title == alarm.title && read?.minutes == -7 && read?.fireDate == date)
    #expect((message?["url"] as? URL)?.path == "/a")
    wormhole.passMessageObject(NSSet(array: [1, 2]), identifier: "a")
    #expect(wormhole.message(withIdentifier: "a") as? Set<Int> == [1, 2])
    #expect(errors.all == [])
  }

  // The unarchiver takes objects that are equal for one if its delegate replaces them.
  @Test("has elements of their own types, also those that are equal")
  func equalElements() throws {
    wormhole.passMessageObject([true, URL(fileURLWithPath: "/a")] as NSArray, identifier: "a")
    var content = try #require(try container.value("a").read())
    var objects = try #require(content["$objects"]?.arrayValue)
    let list = try #require(objects.firstIndex { $0["NS.objects"]?.arrayValue?.count == 2 })
    let elements = try #require(objects[list]["NS.objects"]?.arrayValue)
    // Another program's archive; this one's has one object for all that are equal.
    let added = (0..<2).map { PropertyListValue(["CF$UID": .integer(Int64(objects.count + $0))]) }
    objects += [1, 1.0]
    objects[list]["NS.objects"] = .array(elements + added)
    content["$objects"] = .array(objects)
    try container.value("a").replace(with: content)
    let read = try #require(wormhole.message(withIdentifier: "a") as? NSArray)
    let types = read.compactMap { ($0 as? NSNumber).map { String(cString: $0.objCType) } }
    #expect(types.count == 3 && Set(types).count == 3, "\(types), \(errors.all)")
  }

  /// The archiver ended the process at some of them, depending on the seed of the hashes.
  @Test("arrives whole if equal objects in it have different hashes")
  func unhashed() throws {
    for count in 1...60 {
      func many(_ object: () -> NSObject) -> NSArray {
        NSArray(array: (0..<count).map { _ in object() })
      }
      let objects = many { Unhashed("a") }
      let items = many { NSURLQueryItem(name: "a", value: "b") }
      let nulls = many { NSNull() }
      let message: [any NSCoding] = [
        items, objects, nulls, NSMutableArray(array: [Envelope(items), Envelope(nulls)]),
        Envelope(NSMutableArray(array: [Envelope(nulls)])),
        many { NSOrderedSet(array: [1]) },
        ["k": objects[0], "e": Envelope(objects)] as NSDictionary,
      ]
      wormhole.passMessageObject(message as NSArray, identifier: "a")
      let read = try #require(wormhole.message(withIdentifier: "a") as? NSArray, "\(errors.all)")
      #expect((read[0] as? [NSURLQueryItem])?.filter { $0.value == "b" }.count == count)
      #expect((read[1] as? [Unhashed])?.filter { $0.name == "a" }.count == count)
      #expect((read[2] as? [NSNull])?.count == count)
      let list = (read[4] as? Envelope)?.content
      #expect(list is NSMutableArray, "\(type(of: list))")
      // One object is one again.
      let dictionary = read[6] as? NSDictionary
      let again = (dictionary?["e"] as? Envelope)?.content as? [Unhashed]
      #expect(again?.count == count && again?.first === dictionary?["k"] as AnyObject)
    }
    let items = ["a", "b"].map { NSURLQueryItem(name: $0, value: nil) }
    for set in [
      NSSet(array: items), NSOrderedSet(array: items),
      NSDictionary(objects: [1, 2], forKeys: items as [NSObject]),
    ] {
      errors.removeAll()
      wormhole.passMessageObject([set, Node()] as NSArray, identifier: "a")
      #expect(errors.all.first?.contains("different hashes") == true, "\(errors.all)")
    }
  }

  @Test("is refused with a reason if Linux could not read or write it")
  func refused() throws {
    let circle = Node()
    circle.next = circle
    defer { circle.next = nil }
    wormhole.passMessageObject(circle, identifier: "a")
    #expect(errors.all.count == 1 && errors.all[0].contains("contains itself"), "\(errors.all)")
    let deep = (0..<500).reduce(into: Node()) { list, _ in
      let node = Node()
      node.next = list
      list = node
    }
    wormhole.passMessageObject(deep, identifier: "a")
    #expect(errors.all.count == 2 && errors.all[1].contains("too deeply"), "\(errors.all)")
    wormhole.passMessageObject(["a": [Node(), CancellationError()]], identifier: "a")
    #expect(errors.all.count == 3 && errors.all[2].contains("CancellationError"), "\(errors.all)")
    // Foundation on Linux does not use that name, and would end the process.
    NSKeyedArchiver.setClassName("Nested", for: Nested.self)
    wormhole.passMessageObject([Nested()], identifier: "a")
    #expect(errors.all.count == 4 && errors.all[3].contains("top level"), "\(errors.all)")
    for object in [
      NSError(domain: "d", code: 1), Decimal(1), NSDecimalNumber(value: 1),
      NSDateInterval(start: .now, duration: 1),
    ] as [Any] {
      wormhole.passMessageObject([object, NSSet()] as NSArray, identifier: "a")
      let last = errors.all.last ?? ""
      #expect(last.contains("\(type(of: object))"), "\(last)")
    }
    #expect(errors.all.count == 8, "\(errors.all)")
    #expect(wormhole.message(withIdentifier: "a") == nil)
    #expect(try container.value("a").read() == nil)
  }

  /// Of a notification the user information was lost; one with an object that is not NSCoding, and some classes
  /// of Foundation, ended the process.
  @Test("of any class of Foundation arrives whole, or is refused with a sentence")
  func wholeOrRefused() throws {
    final class Plain: NSObject {}
    let text = NSMutableAttributedString(string: "a", attributes: [.init("k"): Plain()])
    let objects: [any NSCoding] = [
      NSNotification(name: .init("n"), object: nil, userInfo: ["a": 1]),
      NSNotification(name: .init("n"), object: "o", userInfo: ["a": Plain()]),
      NSNotification(name: .init("n"), object: "o", userInfo: [:]),
      NSNotification(name: .init("n"), object: "o"),
      NSNotification(name: .init("n"), object: Plain()),
      NSNotification(name: .init("n"), object: nil),
      NSOrderedSet(array: [1, Plain()]), NSCountedSet(array: [Plain()]),
      NSCountedSet(array: [1, 1, "a"]),
      NSAffineTransform(), NSAttributedString(string: "a"), text,
      NSDateInterval(start: .now, duration: 1),
      NSDecimalNumberHandler.default, DateFormatter(), NumberFormatter(), ISO8601DateFormatter(),
      ByteCountFormatter(),
      DateIntervalFormatter(),
      NSError(domain: "d", code: 1), NSDecimalNumber(value: 1), NSNumber(value: 1.5),
      NSValue(range: NSRange(location: 1, length: 2)),
      NSMeasurement(doubleValue: .nan, unit: UnitLength.meters), UnitLength.meters,
      UnitDuration.hours, NSString("a"), NSMutableString("b"), NSNull(), NSUUID(),
      NSLocale(localeIdentifier: "de_DE"), NSIndexPath(index: 7), NSIndexSet(index: 5),
      NSURLQueryItem(name: "a", value: nil), NSTimeZone(forSecondsFromGMT: 60), NSDateComponents(),
      NSCharacterSet(charactersIn: "ab"), try NSRegularExpression(pattern: "a+"), NSData(),
      NSDate(),
    ]
    for object in objects {
      let forms: [any NSCoding] = [
        object, [object, NSSet()] as NSArray, ["k": object, "s": NSSet()] as NSDictionary,
        Envelope(object), Envelope([object, Envelope(object)] as [Any]),
      ]
      for (number, form) in forms.enumerated() {
        errors.removeAll()
        wormhole.clearMessageContents(forIdentifier: "a")
        wormhole.passMessageObject(form, identifier: "a")
        guard let read = wormhole.message(withIdentifier: "a") else {
          let sentence = errors.all.first ?? ""
          #expect(errors.all.count == 1 && sentence.count > 40, "\(type(of: object)) \(number)")
          continue
        }
        #expect(errors.all.isEmpty)
        let found: Any? =
          switch number {
          case 0: read
          case 1: (read as? NSArray)?.firstObject
          case 2: (read as? NSDictionary)?["k"]
          case 3: (read as? Envelope)?.content
          default: ((read as? Envelope)?.content as? [Any])?.first
          }
        let whole = (found as AnyObject) as? NSObject
        let note = whole as? NSNotification
        // It has no equality.
        let isSame = note.map { $0.name.rawValue == "n" && $0.object as? String == "o" }
        let isWhole =
          isSame ?? (whole == object as? NSObject || "\(found ?? "")" == "\(object)")
        #expect(isWhole, "\(type(of: object)) \(number): \(found ?? "nothing")")
      }
    }
    for plain in [Envelope(Plain()), Envelope([Plain()]), Envelope(["k": Plain()])] {
      errors.removeAll()
      wormhole.passMessageObject(plain, identifier: "b")
      #expect(errors.all.first?.contains("Plain") == true, "\(errors.all)")
    }
    errors.removeAll()
    let note = NSNotification(name: .init("n"), object: "o", userInfo: ["a": 1])
    wormhole.passMessageObject(note, identifier: "b")
    #expect(errors.all.first?.contains("pass a dictionary") == true, "\(errors.all)")
    #expect(wormhole.message(withIdentifier: "b") == nil)
  }

  private func archive(_ objects: PropertyListValue, root: PropertyListValue) -> PropertyListValue {
    [
      "$archiver": "NSKeyedArchiver", "$version": 100_000, "$top": ["root": root],
      "$objects": objects,
    ]
  }

  @Test("that is hostile is an error, and the process lives")
  func hostile() throws {
    let one: PropertyListValue = ["CF$UID": 1]
    let two: PropertyListValue = ["CF$UID": 2]
    let list: PropertyListValue = ["$classname": "NSArray", "$classes": ["NSArray", "NSObject"]]
    let hostile: [PropertyListValue] = [
      archive(["$null", ["$class": two, "NS.objects": [one]], list], root: one),
      archive(["$null"], root: ["CF$UID": 7]),
      archive(["$null"], root: ["CF$UID": -1]),
      archive(["$null"], root: ["CF$UID": "x"]),
      archive(
        ["$null", ["$class": two], ["$classname": "None", "$classes": ["None"]]], root: one),
      archive(
        ["$null", ["$class": two], ["$classname": "N", "$classes": ["N"], "x": ["CF$UID": 7]]],
        root: one),
      archive([], root: one),
      archive(["$null"], root: "text"),
    ]
    for (index, content) in hostile.enumerated() {
      try container.value("a").replace(with: content)
      #expect(wormhole.message(withIdentifier: "a") == nil, "\(content)")
      #expect(errors.all.count == index + 1, "\(content)")
      #expect(errors.all.last?.contains("values/a/value.plist") == true, "\(errors.all)")
    }
    // What only looks like one is a message.
    try container.value("a").replace(with: ["$archiver": "NSKeyedArchiver"])
    #expect(wormhole.message(withIdentifier: "a") as? [String: String] != nil)
  }

  /// Each form of a value with one part of it missing, in excess, or another one in its place.
  private func damaged(_ value: PropertyListValue) -> [PropertyListValue] {
    var forms: [PropertyListValue] = [
      7, -1, .integer(1 << 40), 0.5, .real(.nan), true, "text", .data(Data([1])), [], [:],
      ["CF$UID": 0], ["CF$UID": 1], ["CF$UID": 2], ["CF$UID": 5],
    ]
    for (index, element) in (value.arrayValue ?? []).enumerated() {
      var array = value.arrayValue ?? []
      array.remove(at: index)
      forms.append(.array(array))
      forms += damaged(element).map {
        array.insert($0, at: index)
        defer { array.remove(at: index) }
        return .array(array)
      }
    }
    if var dictionary = value.dictionaryValue {
      dictionary["x"] = ["CF$UID": 99]
      forms.append(.dictionary(dictionary))
    }
    for (key, element) in value.dictionaryValue ?? [:] {
      var dictionary = value.dictionaryValue ?? [:]
      dictionary[key] = nil
      forms.append(.dictionary(dictionary))
      forms += damaged(element).map {
        dictionary[key] = $0
        return .dictionary(dictionary)
      }
    }
    return forms
  }

  // Foundation alone ended the process at a quarter of these.
  @Test(
    "in which any part is missing or another one is an error, or is read, and the process lives")
  func damaged() throws {
    let message: [any NSCoding] = [
      ["a": NSSet(array: [1, 2]), "b": [1, NSNull()]] as NSDictionary,
      [Date(), URL(fileURLWithPath: "/a"), UUID()] as NSArray,
      NSMutableDictionary(dictionary: ["c": NSMutableSet(array: ["d"])]),
    ]
    for part in message {
      wormhole.passMessageObject(part, identifier: "a")
      let content = try #require(try container.value("a").read())
      #expect(content["$archiver"] != nil && errors.all == [])
      for form in damaged(content) {
        try container.value("b").replace(with: form)
        _ = wormhole.message(withIdentifier: "b")
      }
      #expect(!errors.all.isEmpty)
      errors.removeAll()
    }
  }

  @Test("with any class of Foundation is read, refused or an error, whatever its fields are")
  func foundation() throws {
    let objects: [any NSCoding] = [
      NSOrderedSet(array: [1, "a"]), NSCountedSet(array: [1, 1, "a"]), NSIndexSet(index: 5),
      NSMutableIndexSet(indexesIn: NSRange(location: 3, length: 4)), NSIndexPath(index: 7),
      NSCharacterSet(charactersIn: "ab"), NSLocale(localeIdentifier: "de_DE"), NSDateComponents(),
      NSDate(), NSURL(fileURLWithPath: "/a"), NSUUID(), NSPersonNameComponents(), NSNull(),
      NSValue(range: NSRange(location: 1, length: 2)), NSURLQueryItem(name: "a", value: "b"),
      try NSRegularExpression(pattern: "a+"), NSTimeZone(forSecondsFromGMT: 60),
      NSNotification(name: .init("n"), object: "o"), NSMutableData(bytes: [1, 2], length: 2),
      try #require(NSCalendar(identifier: .gregorian)),
      NSMeasurement(doubleValue: 1, unit: UnitLength.meters),
    ]
    for object in objects {
      // In a collection it is refused.
      let isAlone = object is NSCountedSet
      let message: any NSCoding = isAlone ? object : NSArray(array: [object, NSSet()])
      let content = try KeyedArchive.content(of: message)
      let read = try KeyedArchive.object(in: content)
      #expect(isAlone || (read as? NSArray)?.count == 2, "\(object)")
      for form in damaged(content) {
        // `try?`, because a damaged archive may be refused; only the end of the process would be wrong.
        guard let found = try? KeyedArchive.object(in: form) else { continue }
        _ = "\(found)"
        guard let first = (found as? NSArray)?.firstObject as? NSObject,
          let second = try KeyedArchive.object(in: form) as? NSArray
        else { continue }
        let isHashed =
          !first.isEqual(second.firstObject) || first.hash == (second[0] as? NSObject)?.hash
        let isKnown = ArchivedObjects.hasUnequalHashes(NSStringFromClass(type(of: first)))
        #expect(isHashed || isKnown, "a reader would crash at two of \(first) in a set")
      }
    }
  }

  @Test(
    "of a class of Foundation that does not check its fields is refused without them",
    arguments: [
      "NSString", "NSMutableString", "NSError", "NSURLQueryItem", "NSTextCheckingResult",
      "NSAffineTransform", "NSDecimalNumberHandler", "NSISO8601DateFormatter", "ByteCountFormatter",
      "Foundation.NSString", "NSNotification", "NSRegularExpression", "NSValue",
      "NSAttributedString", "NSDateInterval",
    ])
  func unchecked(name: String) throws {
    for hints: PropertyListValue? in [nil, [.string(name)]] {
      let asserted = hints == nil ? name : "App.None"
      var kind: PropertyListValue = [
        "$classname": .string(asserted), "$classes": [.string(asserted), "NSObject"],
      ]
      kind["$classhints"] = hints
      let content = archive(
        ["$null", ["$class": ["CF$UID": 2]], kind], root: ["CF$UID": 1])
      let error = #expect(throws: PropertyListError.self) {
        try KeyedArchive.object(in: content)
      }
      #expect(error.map { "\($0)".contains(name) } == true, "\(String(describing: error))")
    }
  }
}
