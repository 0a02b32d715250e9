extension Array {
  /// The elements in order; equal ones keep their order.
  ///
  /// All types share one sort, because a separate sort for each type adds five kilobytes to every
  /// program. It compares through two closures, so long lists use the library's own sort.
  package func ordered(by precedes: (Element, Element) -> Bool) -> [Element] {
    order(of: count) { precedes(self[$0], self[$1]) }.map { self[$0] }
  }
}

/// The numbers below a count, in the order of what they stand for.
@inline(never)
private func order(of count: Int, _ precedes: (Int, Int) -> Bool) -> [Int] {
  (0..<count).sorted(by: precedes)
}
