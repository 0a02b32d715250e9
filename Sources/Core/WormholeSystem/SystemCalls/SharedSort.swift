extension Array {
  /// The elements in order, equal ones in the order that they have.
  ///
  /// All types share one sort, because each sort for a type of its own takes five kilobytes of every
  /// program. It compares through two closures, so the sorts of long lists are the library's own.
  package func ordered(by precedes: (Element, Element) -> Bool) -> [Element] {
    order(of: count) { precedes(self[$0], self[$1]) }.map { self[$0] }
  }
}

/// The numbers below a count in the order of what they stand for.
@inline(never)
private func order(of count: Int, _ precedes: (Int, Int) -> Bool) -> [Int] {
  (0..<count).sorted(by: precedes)
}
