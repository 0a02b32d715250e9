import PropertyLists
import Synchronization

/// The registration domain: what this process falls back on, in every search list of it.
enum RegisteredDefaults {
  private static let contents = Mutex<Suite.Contents>([:])

  static var all: Suite.Contents { contents.withLock { $0 } }

  static subscript(key: String) -> PropertyListValue? { contents.withLock { $0[key] } }

  static func register(_ defaults: Suite.Contents) {
    contents.withLock { $0.merge(defaults) { $1 } }
  }

  static func replace(with defaults: Suite.Contents) { contents.withLock { $0 = defaults } }
}
