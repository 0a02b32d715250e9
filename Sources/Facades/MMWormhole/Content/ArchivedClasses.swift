import Foundation
import WormholePropertyLists

/// Which of Foundation's classes are read from an archive, and what their objects' fields must be.
///
/// Foundation on Linux ends the process, or never returns, at an object of one of its own classes
/// that lacks a field or has one of another kind. So the only classes read are those whose decoders
/// then return an error, as far as their fields are not checked here: each field was left out, and
/// replaced by numbers, texts, data and references of all kinds. A program's class decodes itself.
extension ArchivedObjects {
  typealias Fields = [String: PropertyListValue]

  /// Refuses an object that Foundation may not survive.
  func checkClasses() throws {
    for index in decoded {
      let entry = objects[index]
      let hints = entry["$classhints"]?.arrayValue?.map(\.stringValue) ?? []
      // The fields are checked for the class itself only.
      if let hint = hints.first(where: { $0?.contains(".") != true || !Self.isSafe($0, [:], self) })
      {
        throw refused(hint)
      }
      guard let fields = entry.dictionaryValue, let name = className(of: entry) else { continue }
      guard Self.isSafe(name, fields, self) else { throw refused(name, index) }
      try checkHashes(of: entry, index)
    }
  }

  private func checkHashes(of entry: PropertyListValue, _ index: Int) throws {
    guard let isHashed = hashedFields(of: entry) else { return }
    let elements = Self.references(in: entry).filter { isHashed($0.field) }
    let names = elements.compactMap { className(of: objects[$0.1]) }.filter(Self.hasUnequalHashes)
    guard let name = names.first, names.count > 1 else { return }
    throw KeyedArchive.damaged(
      "object \(index) has more than one \(name) as its keys or elements; equal ones have different hashes on "
        + "Linux, which would end the process")
  }

  /// Whether equal objects of a Foundation class may have different hashes.
  static func hasUnequalHashes(_ name: String) -> Bool {
    unequalHashes.contains(name) || name.hasPrefix("NSUnit")
  }

  private static let unequalHashes: Set = [
    "NSNull", "NSMeasurement", "NSOrderedSet", "NSMutableOrderedSet", "NSPersonNameComponents",
    "NSRegularExpression", "NSURLQueryItem",
  ]

  private func refused(_ name: String?, _ index: Int? = nil) -> PropertyListError {
    KeyedArchive.damaged(
      "it names the class \(name ?? "?")\(index.map { " for object \($0)" } ?? ""), which Foundation on "
        + "Linux cannot read from such fields without ending the process")
  }

  private static func isSafe(_ name: String?, _ fields: Fields, _ objects: ArchivedObjects) -> Bool
  {
    guard let name else { return false }
    let parts = name.split(separator: ".")
    // Without a module it is one of Foundation's, unless the program has given the name to another.
    guard parts.count < 2 else { return !modules.contains(String(parts[0])) }
    if safe.contains(name) || name.hasPrefix("NSUnit")
      || NSKeyedUnarchiver.class(forClassName: name) != nil
    {
      return true
    }
    return checked[name]?(fields, objects) ?? false
  }

  static let modules: Set = [
    "Foundation", "FoundationEssentials", "FoundationInternationalization",
    "FoundationNetworking", "FoundationXML",
  ]

  private static let safe: Set = [
    "NSArray", "NSMutableArray", "NSSet", "NSMutableSet", "NSDictionary", "NSMutableDictionary",
    "NSData", "NSMutableData", "NSDateComponents", "NSCalendar", "NSTimeZone", "NSLocale",
    "NSIndexPath", "NSNull", "NSNumber", "NSPersonNameComponents", "NSURL", "NSUUID",
  ]

  private static let checked: [String: @Sendable (Fields, ArchivedObjects) -> Bool] = {
    let text: @Sendable (Fields, ArchivedObjects) -> Bool = { fields, _ in
      fields["NS.string"]?.stringValue != nil
    }
    let ordered: @Sendable (Fields, ArchivedObjects) -> Bool = { fields, objects in
      fields.allSatisfy { !$0.key.hasPrefix("NS.object.") || objects.object($0.value) != nil }
    }
    return [
      "NSString": text, "NSMutableString": text,
      "NSIndexSet": ArchivedRanges.areIn, "NSMutableIndexSet": ArchivedRanges.areIn,
      "NSCharacterSet": ArchivedRanges.isOfCharacters,
      "NSMutableCharacterSet": ArchivedRanges.isOfCharacters,
      "NSOrderedSet": ordered, "NSMutableOrderedSet": ordered,
      "NSCountedSet": { fields, objects in
        fields.allSatisfy { !$0.key.hasPrefix("NS.count") || $0.value.intValue ?? -1 >= 0 }
      },
      // Date.description traps on a NaN in FoundationEssentials.
      "NSDate": { fields, _ in fields["NS.time"]?.doubleValue?.isFinite == true },
      "NSMeasurement": { fields, _ in fields["NS.value"]?.doubleValue?.isFinite == true },
      // The decoder crashes at any dictionary in its user info, even an empty one.
      "NSError": { fields, objects in
        let hasNoInfo = fields["NSUserInfo"].map { objects.object($0) == nil } ?? true
        return hasNoInfo && objects.text(fields["NSDomain"]) != nil
      },
      // The decoder crashes if its object cannot be decoded; one without a class can.
      "NSNotification": { fields, objects in
        let object = fields["NS.object"].flatMap { objects.object($0) }
        return object.map { objects.objects[$0].dictionaryValue == nil } ?? false
      },
      "NSRegularExpression": { fields, _ in
        (0...0x7F).contains(fields["NSOptions"]?.intValue ?? -1)
      },
      "NSURLQueryItem": { $1.text($0["NS.name"]) != nil },
      // Any other value is decoded by a type that the archive names.
      "NSValue": { fields, _ in fields["NS.special"]?.intValue != nil },
    ]
  }()

  /// The text to which a field refers; nil for anything else.
  private func text(_ field: PropertyListValue?) -> String? {
    field.flatMap(object(_:)).flatMap { objects[$0].stringValue }
  }
}
