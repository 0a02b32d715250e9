/// "Did you mean": finds the existing word that a mistyped one resembles.
enum Suggestion {
  /// The nearest candidate that is near enough, the first of equals.
  ///
  /// The limit is a third of the longer word, and at least one slip: short words resemble each other by
  /// chance.
  static func nearest(to word: String, among candidates: [String]) -> String? {
    var best: (word: String, distance: Int)?
    for candidate in candidates {
      let distance = distance(Array(word.utf8), Array(candidate.utf8))
      let limit = max(1, max(word.utf8.count, candidate.utf8.count) / 3)
      if distance <= limit, distance < best?.distance ?? .max { best = (candidate, distance) }
    }
    return best?.word
  }

  /// `did you mean 'x'? `, or an empty text.
  static func sentence(for word: String, among candidates: [String]) -> String {
    nearest(to: word, among: candidates).map { "did you mean '\($0)'? " } ?? ""
  }

  /// The edits that turn `a` into `b`: insertion, deletion, replacement, and the exchange of two
  /// neighbours, the commonest slip of all (optimal string alignment).
  static func distance(_ a: [UInt8], _ b: [UInt8]) -> Int {
    var beforeLast: [Int] = []
    var last = Array(0...b.count)
    for i in a.indices {
      var row = [i + 1]
      for j in b.indices {
        let replaced = last[j] + (a[i] == b[j] ? 0 : 1)
        var least = min(replaced, last[j + 1] + 1, row[j] + 1)
        if i > 0, j > 0, a[i] == b[j - 1], a[i - 1] == b[j] {
          least = min(least, beforeLast[j - 1] + 1)
        }
        row.append(least)
      }
      (beforeLast, last) = (last, row)
    }
    return last[b.count]
  }
}
