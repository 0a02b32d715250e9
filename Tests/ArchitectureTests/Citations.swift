/// What comments refer their reader to.
enum Citations {
  /// Names of documents, and marks of sections and issues, that are not in the repository.
  private static let outside = ["DESIGN", "SEMANTICS", "STYLE.md", "architecture.md", "§"]

  /// Comments that refer to a document that a reader of the repository cannot open.
  static func findings(in text: SourceText, path: String) -> [Finding] {
    let cited = outside.filter(text.hasComment)
    if cited.isEmpty { return [] }
    return text.lines.enumerated().flatMap { index, line in
      cited.filter { line.comment.contains($0) }.map {
        Finding(path, index + 1, "“\($0)” is not in the repository; cite a page that is")
      }
    }
  }

  /// The numbers of the rules that comments cite: of "rule 2", "rules 4 and 5", "Rules 1, 2 and 4".
  static func rules(in text: SourceText) -> Set<Int> {
    var found: Set<Int> = []
    for line in text.lines where line.comment.contains("ule") {
      let words = line.comment.split { !$0.isLetter && !$0.isNumber }
      for (word, next) in zip(words.indices, words.indices.dropFirst())
      where ["rule", "rules"].contains(words[word].lowercased()) {
        let numbers = words[next...].prefix { Int($0) != nil || $0 == "and" || $0 == "to" }
        found.formUnion(numbers.compactMap { Int($0) })
      }
    }
    return found
  }
}
