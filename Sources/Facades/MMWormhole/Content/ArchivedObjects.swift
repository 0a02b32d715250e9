import Foundation
import WormholePropertyLists

/// The objects of an archive, and their references.
struct ArchivedObjects {
  let objects: [PropertyListValue]
  private let root: PropertyListValue?
  private let version: PropertyListValue?
  /// The objects that the root contains, including itself, and their classes, once checked.
  private(set) var decoded: [Int] = []

  /// What decoding an object costs. Whatever two objects share counts for both, because Foundation
  /// copies and compares it for both. A set's element, or a key, counts as often as Foundation
  /// compares it: once for each of the same hash. A range counts ten times: it takes that long.
  private struct Extent {
    /// The number of levels below and including it.
    var height = 1
    var nodes = 1
    var bytes: Int
  }

  private enum Visit {
    case begun
    case done(Extent)
  }

  init(_ content: PropertyListValue) {
    objects = content["$objects"]?.arrayValue ?? []
    root = content["$top"]?[NSKeyedArchiveRootObjectKey]
    version = content["$version"]
  }

  /// Refuses an archive in a form other than Foundation's own, references in a circle or deeper
  /// than the limit, and objects that are too many or too large once each reference counts.
  mutating func check(depth: Int, limits: PropertyListLimits) throws {
    guard version?.intValue == 100_000, objects.first?.stringValue == "$null",
      let root = root.flatMap(object(_:))
    else { throw KeyedArchive.damaged("it is not in the format of Foundation's archives") }
    for (index, entry) in objects.enumerated() where !isWellFormed(entry) {
      throw KeyedArchive.damaged("object \(index) is not in the format of Foundation's archives")
    }
    var visits: [Int: Visit] = [:]
    _ = try extent(of: root, room: depth, limits, &visits)
    decoded = visits.keys.sorted()
  }

  /// Returns an archive of the same objects in which each dictionary refers to a list of its keys and
  /// one of its values, and each ordered set to a list of its elements, for `ArchivedCollection`.
  func separatingElements(in archive: PropertyListValue) -> PropertyListValue {
    var objects = objects
    let listClass = PropertyListValue(archiveReference: Int64(objects.count))
    objects.append(["$classname": "NSArray", "$classes": ["NSArray", "NSObject"]])
    for (index, entry) in self.objects.enumerated() {
      guard let name = className(of: entry) else { continue }
      var lists: [String: PropertyListValue] = [:]
      if ArchivedCollection.dictionaries.contains(name) {
        for field in [ArchivedCollection.keys, ArchivedCollection.objects] {
          lists[field] = entry[field]
        }
      } else if ArchivedCollection.orderedSets.contains(name) {
        let elements = (0...).lazy.map { entry["NS.object.\($0)"] }.prefix { $0 != nil }
        lists[ArchivedCollection.objects] = .array(elements.compactMap { $0 })
      }
      for (field, list) in lists {
        objects[index][field] = PropertyListValue(archiveReference: Int64(objects.count))
        objects.append(["$class": listClass, ArchivedCollection.objects: list])
      }
    }
    var archive = archive
    archive["$objects"] = .array(objects)
    return archive
  }

  /// The bytes to which a field refers: directly, or as an object that has nothing else.
  func data(_ field: PropertyListValue?) -> Data? {
    guard let entry = field.flatMap(object(_:)).map({ objects[$0] }) else { return nil }
    if let data = entry.dataValue { return data }
    guard let name = className(of: entry), ["NSData", "NSMutableData"].contains(name),
      entry.dictionaryValue?.count == 2
    else { return nil }
    return entry["NS.data"]?.dataValue
  }

  func className(of entry: PropertyListValue) -> String? {
    guard let reference = entry["$class"].flatMap(Self.target),
      objects.indices.contains(reference), isClass(objects[reference])
    else { return nil }
    return objects[reference]["$classname"]?.stringValue
  }

  private func extent(
    of index: Int, room: Int, _ limits: PropertyListLimits, _ visits: inout [Int: Visit]
  ) throws -> Extent {
    // A class may have unknown fields.
    guard objects.indices.contains(index) else {
      throw KeyedArchive.damaged("it refers to an object that it does not have")
    }
    switch visits[index] {
    case .begun: throw KeyedArchive.damaged("an object contains itself, which Linux cannot read")
    case .done(let extent):
      guard extent.height <= room else { throw Self.tooDeep }
      return extent
    case nil: break
    }
    guard room > 0 else { throw Self.tooDeep }
    visits[index] = .begun
    let entry = objects[index]
    var extent = Extent(bytes: Self.contentBytes(of: entry))
    // One more than the limit stands for any larger number, and cannot overflow.
    let many = { max(0, min($0, limits.maximumNodes + 1)) }
    if let ranges = entry["NSRangeCount"]?.intValue { extent.nodes += 10 * many(ranges) }
    let references = Self.references(in: entry)
    let hashed = hashedFields(of: entry)
    var equals: [Int: Int] = [:]
    for (field, element) in references where hashed?(field) == true {
      equals[hash(of: element), default: 0] += 1
    }
    for (field, reference) in references {
      let part = try self.extent(of: reference, room: room - 1, limits, &visits)
      extent.height = max(extent.height, 1 + part.height)
      extent.bytes += part.bytes
      if hashed?(field) == true {
        // A counted set adds an object as often as its count says.
        let count = entry["NS.count" + field.dropFirst("NS.object".count)]?.intValue ?? 1
        extent.nodes +=
          max(1, many(count)) * equals[hash(of: reference), default: 1]
          * (part.nodes + part.bytes / Self.bytesComparedAsANode)
      } else {
        extent.nodes += part.nodes
      }
      guard extent.nodes <= limits.maximumNodes, extent.bytes <= limits.maximumExpandedBytes else {
        throw KeyedArchive.damaged(
          "its objects refer to one another, or have equal hashes, so often that they are more than "
            + "\(limits.maximumNodes), or \(limits.maximumExpandedBytes) bytes, once expanded")
      }
    }
    visits[index] = .done(extent)
    return extent
  }

  private static let bytesComparedAsANode = 1 << 16

  /// Which fields refer to objects that Foundation finds by their hashes; nil for none.
  func hashedFields(of entry: PropertyListValue) -> ((String) -> Bool)? {
    guard let name = className(of: entry) else { return nil }
    if ArchivedCollection.dictionaries.contains(name) { return { $0 == ArchivedCollection.keys } }
    // For a set, in any form.
    return name.hasSuffix("Set") ? { $0.hasPrefix("NS.object") } : nil
  }

  /// Foundation's hash of a text, a number or data; many of them may share one. The objects of most
  /// classes count as sharing one, as all arrays of one length do.
  private func hash(of index: Int) -> Int {
    guard objects[index].dictionaryValue == nil else { return 0 }
    return (objects[index].propertyListObject as? AnyHashable as? NSObject)?.hash ?? 0
  }

  private static func contentBytes(of object: PropertyListValue) -> Int {
    let values = object.dictionaryValue.map { Array($0.values) } ?? [object]
    return values.reduce(0) { sum, value in
      sum + (value.stringValue?.utf8.count ?? value.dataValue?.count ?? 0)
    }
  }

  private func isWellFormed(_ entry: PropertyListValue) -> Bool {
    guard let fields = entry.dictionaryValue else { return entry.arrayValue == nil }
    guard fields["$classname"] == nil else { return isClass(entry) }
    guard let name = className(of: entry) else { return false }
    let areReferences = fields.allSatisfy { key, value in
      if key == "$class" { return true }
      if let array = value.arrayValue { return array.allSatisfy { object($0) != nil } }
      return value.dictionaryValue == nil || Self.target(of: value) == 0 || object(value) != nil
    }
    return areReferences && Self.hasElements(fields, of: name)
  }

  private func isClass(_ entry: PropertyListValue) -> Bool {
    guard let name = entry["$classname"]?.stringValue,
      let classes = entry["$classes"]?.arrayValue
    else { return false }
    return classes.first?.stringValue == name && classes.allSatisfy { $0.stringValue != nil }
  }

  /// The object that a value refers to; nil if that is nil or a class.
  func object(_ value: PropertyListValue) -> Int? {
    guard let index = Self.target(of: value), index > 0, index < objects.count else { return nil }
    return objects[index]["$classname"] == nil ? index : nil
  }

  /// Whether the fields have what Foundation's collections decode without looking.
  private static func hasElements(_ fields: [String: PropertyListValue], of name: String) -> Bool {
    switch name {
    case "NSArray", "NSMutableArray", "NSSet", "NSMutableSet":
      return fields["NS.objects"]?.arrayValue != nil
    case _ where ArchivedCollection.dictionaries.contains(name):
      guard let keys = fields[ArchivedCollection.keys]?.arrayValue else { return false }
      return keys.count == fields[ArchivedCollection.objects]?.arrayValue?.count
    default: return true
    }
  }

  private static func target(of value: PropertyListValue) -> Int? {
    value.archiveReference.map(Int.init)
  }

  private static let tooDeep = KeyedArchive.damaged("its objects are nested too deeply")

  /// Returns the references of a well-formed object, including those in its arrays.
  static func references(in object: PropertyListValue) -> [(field: String, Int)] {
    object.dictionaryValue?.flatMap { field, value in
      (value.arrayValue ?? [value]).compactMap(target).map { (field, $0) }
    } ?? []
  }
}
