import WormholePropertyLists

extension PropertyListValue {
  /// The longest text in a line, in characters, and the largest value that is written at all.
  private static let longestText = 160
  private static let largestValue = 65_536

  /// A value within a line for people: JSON, cut where it is long; nil if it is too large, or if JSON
  /// cannot hold it.
  ///
  /// - Parameter bytes: its size, where that is known.
  func shortText(bytes: Int? = nil) -> String? {
    if case .data(let data) = self { return "data of \(data.count) B" }
    guard (bytes ?? 0) <= Self.largestValue else { return nil }
    do {
      let text = try JSONWriter.string(self).onOneLine
      guard text.count > Self.longestText else { return text }
      return text.prefix(Self.longestText) + "…" + (bytes.map { " (\($0) B)" } ?? "")
    } catch {
      return nil
    }
  }
}
