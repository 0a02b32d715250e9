import PropertyLists
import Synchronization

/// The registration domain: the fallback values of this process, which are part of its every search
/// list.
enum RegisteredDefaults {
  private static let contents = Mutex<Suite.Contents>([:])

  static var all: Suite.Contents { contents.withLock { $0 } }

  static subscript(key: String) -> PropertyListValue? { contents.withLock { $0[key] } }

  static func register(_ defaults: Suite.Contents) {
    contents.withLock { $0.merge(defaults) { $1 } }
  }

  static func replace(with defaults: Suite.Contents) { contents.withLock { $0 = defaults } }
}
