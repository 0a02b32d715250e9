import Wormhole

extension Log {
  /// Returns the use of the package's own value that is the position of a subscriber; nil for any
  /// other name.
  package static func use(ofOwnValue name: String) -> OwnUse? {
    guard let (log, subscriber) = LogCursor.subscriber(ofOwnName: name) else { return nil }
    return OwnUse("the position of \"\(subscriber)\" in the log \"\(log)\"", is: "position") {
      LogCursor.Position($0) != nil
    }
  }
}
