import Foundation

/// Makes an archiver treat two objects as one only if they are the same object, except for texts,
/// numbers, data and collections.
///
/// Foundation on Linux finds objects that it has archived by equality and hash, and ends the
/// process if equal objects have different hashes. Those of `NSNull` and several other Foundation
/// classes do, and those of each of the program's classes that overrides only `isEqual(_:)`. So it
/// gets each of them within an object that is equal only to itself.
final class UniqueObjects: ObjectCoder {
  private var originals: [ObjectIdentifier: Original] = [:]

  override func replacement(for object: Any) -> Any {
    switch object as AnyObject {
    case let array as NSArray:
      let elements = array.map(replacement(for:))
      return array is NSMutableArray ? NSMutableArray(array: elements) : elements
    case let dictionary as NSDictionary:
      let replaced = NSMutableDictionary()
      for (key, value) in dictionary {
        // A key can be one again.
        if let key = replacement(for: key) as? AnyHashable {
          replaced[key] = replacement(for: value)
        }
      }
      return dictionary is NSMutableDictionary ? replaced : replaced.copy()
    case let set as NSSet where !(set is NSCountedSet):
      let elements = set.map(replacement(for:))
      return set is NSMutableSet ? NSMutableSet(array: elements) : NSSet(array: elements)
    case is NSString, is NSNumber, is NSData: return object
    case let coding as any NSCoding & AnyObject:
      let original = originals[ObjectIdentifier(coding)] ?? Original(coding, self)
      originals[ObjectIdentifier(coding)] = original
      return original
    default: return object
    }
  }

  /// Is archived as the object that it holds.
  private final class Original: NSObject, NSCoding, NSCopying {
    private let object: any NSCoding & AnyObject
    private unowned let coder: UniqueObjects

    init(_ object: any NSCoding & AnyObject, _ coder: UniqueObjects) {
      self.object = object
      self.coder = coder
    }
    /// Never called, because the archive names the class of the object.
    init?(coder: NSCoder) { nil }

    override var classForKeyedArchiver: AnyClass? {
      (object as? NSObject)?.classForKeyedArchiver ?? type(of: object)
    }
    func encode(with coder: NSCoder) { object.encode(with: self.coder) }
    func copy(with zone: NSZone?) -> Any { self }
  }
}
