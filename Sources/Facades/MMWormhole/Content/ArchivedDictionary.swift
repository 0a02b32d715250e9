import Foundation

/// What decodes the dictionaries of an archive: Foundation's own on Linux reads beyond the end of its
/// values, and so may end the process, if one of them cannot be decoded.
final class ArchivedDictionary: NSObject, NSCoding {
  static let names: Set = ["NSDictionary", "NSMutableDictionary"]
  static let keys = "NS.keys"
  static let objects = "NS.objects"

  private let dictionary: NSMutableDictionary

  /// - Returns: Nil if an element is missing, or a key is none.
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

  /// None is ever archived.
  func encode(with coder: NSCoder) {}

  /// Puts the dictionaries in the places of their decoders.
  final class Delegate: NSObject, NSKeyedUnarchiverDelegate {
    func unarchiver(_ unarchiver: NSKeyedUnarchiver, didDecode object: Any?) -> Any? {
      (object as? ArchivedDictionary)?.dictionary ?? object
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
