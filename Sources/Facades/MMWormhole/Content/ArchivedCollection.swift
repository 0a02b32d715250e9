import Foundation

/// The decoder of an archive's dictionaries and ordered sets. Foundation's own ones on Linux may
/// end the process if an element cannot be decoded.
final class ArchivedCollection: NSObject, NSCoding {
  static let dictionaries: Set = ["NSDictionary", "NSMutableDictionary"]
  static let orderedSets: Set = ["NSOrderedSet", "NSMutableOrderedSet"]
  static let keys = "NS.keys"
  static let objects = "NS.objects"

  private let collection: NSObject

  /// - Returns: Nil if an element is missing, or if an object cannot be a key.
  init?(coder: NSCoder) {
    guard let objects = coder.decodeObject(forKey: Self.objects) as? [Any] else { return nil }
    guard coder.containsValue(forKey: Self.keys) else {
      collection = NSMutableOrderedSet(array: objects)
      return
    }
    guard let keys = coder.decodeObject(forKey: Self.keys) as? [Any], keys.count == objects.count
    else { return nil }
    let dictionary = NSMutableDictionary()
    for (key, object) in zip(keys, objects) {
      guard let key = key as? AnyHashable else { return nil }
      dictionary[key] = object
    }
    collection = dictionary
  }

  /// Never called, because the class only decodes.
  func encode(with coder: NSCoder) {}

  /// Replaces the decoders with the collections.
  final class Delegate: NSObject, NSKeyedUnarchiverDelegate {
    // Nil leaves the object as it is. The unarchiver on Linux keeps every other answer by the
    // object's value: it would take 1 for an equal true, and end the process at a changed object.
    func unarchiver(_ unarchiver: NSKeyedUnarchiver, didDecode object: Any?) -> Any? {
      (object as? ArchivedCollection)?.collection
    }

    // On Linux, all of the protocol is required.
    func unarchiver(
      _ unarchiver: NSKeyedUnarchiver, cannotDecodeObjectOfClassName name: String,
      originalClasses classNames: [String]
    ) -> AnyClass? { nil }
    func unarchiver(
      _ unarchiver: NSKeyedUnarchiver, willReplace object: Any, with newObject: Any
    ) {}
    func unarchiverWillFinish(_ unarchiver: NSKeyedUnarchiver) {}
    func unarchiverDidFinish(_ unarchiver: NSKeyedUnarchiver) {}
  }
}
