/// A reference in a collection that does not keep its object.
struct Weak<Object: AnyObject & Sendable>: Sendable {
  weak var object: Object?
}

extension Array {
  /// Returns the elements in parts of at most that many, because one request has a limit.
  func parts(of count: Int) -> [ArraySlice<Element>] {
    stride(from: 0, to: self.count, by: count).map { dropFirst($0).prefix(count) }
  }
}
