import WormholePropertyLists

/// The error of a presenter in another process, in terms of Foundation's errors, because a value of
/// a Swift type cannot cross to a program that may lack that type.
package struct PresenterRefusal: Sendable, Hashable {
  package let domain: String
  package let code: Int
  /// Its description for users.
  package let description: String
  /// The entries of its `userInfo` that are property lists.
  private let userInfo: [String: PropertyListValue]

  package var userInfoObjects: [String: Any] { userInfo.mapValues(\.propertyListObject) }

  /// A larger `userInfo` is left out, because the refusal itself must arrive.
  private static let maximumBytes = 65_536

  package init(domain: String, code: Int, description: String, userInfo: [String: Any]) {
    self.domain = domain
    self.code = code
    self.description = description
    let lists = userInfo.compactMapValues { value in
      // Other values mean something only in the presenter's process.
      try? PropertyListValue(propertyList: value)
    }
    // A value that cannot be stored, such as a text with a null character, cannot be sent either.
    let bytes = (try? PropertyListValue.dictionary(lists).binaryData().count) ?? .max
    self.userInfo = bytes <= Self.maximumBytes ? lists : [:]
  }

  /// The domain and code that the compiler gives every error.
  init(_ error: any Error) {
    self.init(domain: error._domain, code: error._code, description: "\(error)", userInfo: [:])
  }

  /// - Returns: nil for anything else.
  init?(_ value: PropertyListValue?) {
    guard let domain = value?["domain"]?.stringValue, let code = value?["code"]?.int64Value,
      let description = value?["description"]?.stringValue
    else { return nil }
    self.domain = domain
    self.code = Int(code)
    self.description = description
    userInfo = value?["userInfo"]?.dictionaryValue ?? [:]
  }

  var propertyList: PropertyListValue {
    [
      "domain": .string(domain), "code": PropertyListValue(code),
      "description": .string(description), "userInfo": .dictionary(userInfo),
    ]
  }
}

/// A presenter written for the original: it has an operation queue, describes its errors for other
/// processes better than their types do, and learns of versions.
package protocol OriginalPresenter: FilePresenter {
  /// Adds a callback to its operation queue, which stands for `presentedItemQueue`.
  func enqueue(_ callback: @escaping @Sendable () -> Void)

  func refusal(for error: any Error) -> PresenterRefusal

  /// - Parameter isSubitem: whether the item is in the presented directory.
  func hear(
    _ event: KeptCopies.Event, _ copy: KeptCopies.Copy, of item: KeptCopies, isSubitem: Bool)
}
