import Foundation

/// The decoder of the dictionaries of an archive. Foundation's own on Linux reads beyond the end of its
/// values if one of them cannot be decoded, which may end the process.
final class ArchivedDictionary: NSObject, NSCoding {
  static let names: Set = ["NSDictionary", "NSMutableDictionary"]
  static let keys = "NS.keys"
  static let objects = "NS.objects"

  private let dictionary: NSMutableDictionary

  /// - Returns: Nil if an element is missing, or if an object cannot be a key.
  init?(coder: NSCoder) {
    guard let keys = coder.decodeObject(forKey: Self.keys) as? [Any],
      let objects = coder.decodeObject(forKey: Self.objects) as? [Any],
      keys.count == objects.count
    else { return nil }
    dictionary = NSMutableDictionary()
    for (key, object) in zip(keys, objects) {
      guard let key = key as? AnyHashable else { return nil }
      dictionary[key] = object
    }
  }

  /// Never called, because the class only decodes.
  func encode(with coder: NSCoder) {}

  /// Puts the dictionaries in the places of their decoders.
  final class Delegate: NSObject, NSKeyedUnarchiverDelegate {
    // Nil leaves the object as it is. The unarchiver on Linux keeps every other answer by the value of
    // the object: it would take 1 for an equal true, and end the process at an object that has changed.
    func unarchiver(_ unarchiver: NSKeyedUnarchiver, didDecode object: Any?) -> Any? {
      (object as? ArchivedDictionary)?.dictionary
    }

    // On Linux all of the protocol is required.
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
