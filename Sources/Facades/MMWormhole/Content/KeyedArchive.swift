import Foundation
import WormholePropertyLists

/// A message as it is stored and sent: the property list itself if the object is one, otherwise a
/// keyed archive.
enum MessageContent {
  /// - Throws: `PropertyListError` for an object that neither form can hold.
  static func content(of message: any NSCoding) throws -> PropertyListValue {
    do throws(PropertyListError) {
      return try PropertyListValue(propertyList: message)
    } catch {
      guard error.code == .unsupportedType else { throw error }
      return try KeyedArchive.content(of: message)
    }
  }

  /// Each type is named. A cast to NSCoding would look for a conformance of this module in the
  /// running program, and a linker leaves out objects in a static archive that nothing names.
  ///
  /// - Throws: The reason why an archive cannot be read.
  static func message(from content: PropertyListValue) throws -> any NSCoding {
    guard !KeyedArchive.isArchive(content) else { return try KeyedArchive.object(in: content) }
    switch content {
    case .string(let text): return text
    case .boolean(let boolean): return NSNumber(value: boolean)
    case .date(let date): return date
    case .data(let data): return data
    case .array(let array): return array.map(\.propertyListObject)
    case .dictionary(let dictionary): return dictionary.mapValues(\.propertyListObject)
    case .integer(let number): return NSNumber(value: number)
    case .unsigned(let number): return NSNumber(value: number)
    case .real(let number): return NSNumber(value: number)
    }
  }
}

/// An object as `NSKeyedArchiver` archives it, with each reference as a dictionary
/// `{"CF$UID": NUMBER}`, as in XML. So an object that a property list cannot hold is a property list
/// of the allowed types, which passes the same guard as any other and which every tool reads.
///
/// Foundation on Linux ends the process at an archive that is not formed like its own, and at an
/// object that cannot be archived. Both are errors here, found before Foundation sees them. But
/// which keys a program's object expects in its archive is not known here.
enum KeyedArchive {
  /// Each level takes about a kilobyte of stack, and some threads have 512.
  static let deepestNesting = 200
  private static let name = "NSKeyedArchiver"
  private static let limits = {
    var limits = PropertyListLimits.standard
    limits.admitsReferences = true
    return limits
  }()

  static func isArchive(_ content: PropertyListValue) -> Bool {
    content["$archiver"]?.stringValue == name && content["$objects"]?.arrayValue != nil
      && content["$top"]?.dictionaryValue != nil
  }

  static func content(of object: any NSCoding) throws -> PropertyListValue {
    try ArchivableCheck.run(object)
    let archiver = NSKeyedArchiver(requiringSecureCoding: false)
    archiver.outputFormat = .binary
    UniqueObjects(archiver).encode(object, forKey: NSKeyedArchiveRootObjectKey)
    archiver.finishEncoding()
    let content = try PropertyListValue(data: archiver.encodedData, limits: limits)
    // The receiver would refuse it.
    try objects(in: content).checkClasses()
    return content
  }

  /// Unarchives with the classes that the archive names, both Foundation's and the program's:
  /// `init(coder:)` of each runs on bytes that other processes wrote.
  static func object(in content: PropertyListValue) throws -> any NSCoding {
    let objects = try objects(in: content)
    try objects.checkClasses()
    let archive = objects.separatingElements(in: content)
    let bytes = try archive.binaryBytes(limits: limits)
    let unarchiver = try NSKeyedUnarchiver(forReadingFrom: Data(bytes))
    unarchiver.requiresSecureCoding = false
    unarchiver.decodingFailurePolicy = .setErrorAndReturn
    for name in ArchivedCollection.dictionaries.union(ArchivedCollection.orderedSets) {
      unarchiver.setClass(ArchivedCollection.self, forClassName: name)
    }
    let delegate = ArchivedCollection.Delegate()
    unarchiver.delegate = delegate
    defer { withExtendedLifetime(delegate) {} }
    defer { unarchiver.finishDecoding() }
    let object = unarchiver.decodeObject(forKey: NSKeyedArchiveRootObjectKey)
    if let error = unarchiver.error { throw error }
    guard let object = object as? any NSCoding else {
      throw damaged("it holds no object that is NSCoding")
    }
    return object
  }

  /// Returns the archive that the original would write for a message.
  static func bytes(of content: PropertyListValue) throws -> [UInt8] {
    let isArchive = isArchive(content)
    let archive = isArchive ? content : try self.content(of: MessageContent.message(from: content))
    _ = try objects(in: archive)
    return try archive.binaryBytes(limits: limits)
  }

  /// Returns the message in an archive written by any program, as it is stored here.
  static func content(ofBytes bytes: [UInt8]) throws -> PropertyListValue {
    let content = try PropertyListValue(bytes: bytes, limits: limits)
    guard isArchive(content) else { throw damaged("it has no objects") }
    _ = try objects(in: content)
    do {
      return try PropertyListValue(propertyList: object(in: content))
    } catch {
      // This program lacks its class, or a property list cannot hold it. So it stays in its
      // archive: a program that can read it may do so.
      return content
    }
  }

  private static func objects(in content: PropertyListValue) throws -> ArchivedObjects {
    var objects = ArchivedObjects(content)
    try objects.check(depth: deepestNesting, limits: limits)
    return objects
  }

  static func damaged(_ reason: String) -> PropertyListError {
    PropertyListError(.malformed, at: .keyPath(""), "as a keyed archive, \(reason)")
  }
}
