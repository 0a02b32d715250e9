import Foundation
import WormholePropertyLists

/// Refuses what Foundation on Linux cannot archive: it ends the process at objects that are not
/// `NSCoding`, and at some that are; and it silently drops a notification's user information.
///
/// A program's object is inspected by encoding it with this coder, which keeps nothing.
final class ArchivableCheck: ObjectCoder {
  /// Why the first unusable object cannot be archived.
  private var refusal: (any Error)?
  private var depth = 0
  /// The program's objects that were encoded: two may refer to each other.
  private var seen: Set<ObjectIdentifier> = []

  static func run(_ object: Any) throws {
    let check = ArchivableCheck(nil)
    check.look(at: object)
    if let refusal = check.refusal { throw refusal }
  }

  override func replacement(for object: Any) -> Any {
    look(at: object)
    return object
  }

  private func look(at object: Any) {
    guard refusal == nil else { return }
    guard depth < KeyedArchive.deepestNesting else {
      refusal = PropertyListError(
        .tooDeep, at: .keyPath(""), "its objects are nested too deeply, more than \(depth) levels")
      return
    }
    depth += 1
    defer { depth -= 1 }
    do {
      for element in try Self.elements(of: object) { look(at: element) }
      guard Self.isOfProgram(object as AnyObject), let coding = object as? any NSCoding,
        seen.insert(ObjectIdentifier(object as AnyObject)).inserted
      else { return }
      coding.encode(with: self)
    } catch {
      refusal = error
    }
  }

  static func isOfProgram(_ object: AnyObject) -> Bool {
    let module = String(reflecting: type(of: object)).split(separator: ".").first.map(String.init)
    return module.map { !ArchivedObjects.modules.contains($0) && $0 != "Swift" } ?? false
  }

  private static func elements(of object: Any) throws -> [Any] {
    if hasCountedSet(object as AnyObject) {
      throw PropertyListError(
        .unsupportedType, at: .keyPath(""),
        "it holds an NSCountedSet in a collection, and Foundation on Linux takes it for an empty set there; "
          + "pass a dictionary of counts")
    }
    switch object {
    case let array as [Any]: return array
    case let dictionary as [AnyHashable: Any]:
      return dictionary.keys.map(\.base) + dictionary.values
    // As a Swift set it has no elements.
    case let set as NSCountedSet: return Array(set.objectEnumerator())
    case let set as Set<AnyHashable>: return set.map(\.base)
    case let set as NSOrderedSet: return set.array
    default: break
    }
    let instance = object as AnyObject
    if instance is NSDecimalNumber || object is NSError {
      throw refused(
        object,
        "Foundation on Linux ends the process when it archives one; pass its text or its number"
      )
    }
    if let notification = instance as? NSNotification {
      guard notification.userInfo?.isEmpty != false else {
        throw refused(
          object,
          "Foundation on Linux leaves the user information out when it archives one; pass a dictionary"
        )
      }
      return notification.object.map { [$0] } ?? []
    }
    guard instance is any NSCoding else {
      throw refused(object, "that is neither a property list nor NSCoding")
    }
    let name = String(reflecting: type(of: instance))
    let parts = name.split(separator: ".")
    if let module = parts.first, ArchivedObjects.modules.contains(String(module)) {
      guard isWritten(instance) else {
        throw refused(instance, "Foundation on Linux cannot archive one and read it again")
      }
      return []
    }
    // Foundation on Linux ends the process at a class that is within another type or private to a
    // file, because it has no name for it; names from `NSKeyedArchiver.setClassName` do not help.
    guard parts.count == 2, !name.contains("(") else {
      throw PropertyListError(
        .unsupportedType, at: .keyPath(""),
        "\(name) is not a class at the top level of a module, and only such are archived on Linux")
    }
    return []
  }

  /// Whether an array or a dictionary has a counted set, which its own methods return as a Swift
  /// set without elements. Its mirror has the objects; false if a later Foundation's differs.
  private static func hasCountedSet(_ collection: AnyObject) -> Bool {
    guard collection is NSArray || collection is NSDictionary else { return false }
    return Mirror(reflecting: collection).children.contains { _, value in
      let object = (value as? (key: NSObject, value: AnyObject))?.value ?? value
      return object is NSCountedSet
    }
  }

  /// Foundation's classes whose objects are written, and read as they were.
  private static let written: [AnyClass] = [
    NSString.self, NSNumber.self, NSValue.self, NSData.self, NSDate.self, NSNull.self, NSURL.self,
    NSUUID.self, NSCalendar.self, NSTimeZone.self, NSLocale.self, NSDateComponents.self,
    NSPersonNameComponents.self, NSIndexPath.self, NSIndexSet.self, NSCharacterSet.self,
    NSRegularExpression.self, NSURLQueryItem.self, NSMeasurement.self, Unit.self,
  ]

  private static func isWritten(_ object: AnyObject) -> Bool {
    guard let object = object as? NSObject else { return false }
    return written.contains { object.isKind(of: $0) }
  }

  private static func refused(_ object: Any, _ reason: String) -> PropertyListError {
    PropertyListError(
      .unsupportedType, at: .keyPath(""),
      "it holds an object of type \(type(of: object)), and \(reason)")
  }
}
