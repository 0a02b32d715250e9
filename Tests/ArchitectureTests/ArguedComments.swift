import Glibc

/// Returns constructs that may hide an error, crash, or race, without a comment that argues why.
///
/// The comment stands on the same line or is the block of comment lines directly above, and has at
/// least four words.
func unarguedFindings(in text: SourceText, path: String) -> [Finding] {
  var findings: [Finding] = []
  let present = risks.filter(text.hasCode)
  if present.isEmpty { return [] }
  for (index, line) in text.lines.enumerated() {
    let risks = present.filter { contains(line.code, word: $0) }
    if risks.isEmpty || isArgument(line.comment) || isArgument(commentBlock(above: index, in: text))
    {
      continue
    }
    for risk in risks {
      findings.append(
        Finding(path, index + 1, "`\(risk)` needs a comment on the line above that argues why"))
    }
  }
  return findings
}

/// Returns calculations with the numbers of a file's time or of the clock, which may be any, outside of the
/// room that has the one type for it.
func timeFindings(in text: SourceText, path: String) -> [Finding] {
  guard !path.hasPrefix("Sources/Core/WormholeSystem/"), !path.hasPrefix("Sources/Workshop/")
  else { return [] }
  let numbers = ["modifiedSeconds", "changedSeconds", "realTime().seconds"]
  return text.lines.enumerated().filter { _, line in
    let words = line.code.split(separator: " ")
    let isOf = { (word: Substring) in numbers.contains { word.contains($0) } }
    return zip(words.indices, words).contains { index, word in
      guard ["+", "-", "*", "&+", "&-", "&*"].contains(word) else { return false }
      let (left, right) = (words[..<index].last ?? "", words[(index + 1)...].first ?? "")
      // Days have a number of seconds that is written down.
      return isOf(left) || isOf(right)
        || word.hasSuffix("*") && right.hasPrefix("1_000_000_000") && left.last?.isNumber == false
    }
  }.map { Finding(path, $0.offset + 1, "a time may be any: calculate with WallTime") }
}

/// Returns uses of what is forbidden everywhere.
func forbiddenFindings(in text: SourceText, path: String) -> [Finding] {
  forbidden.filter { text.hasCode($0.code) }.flatMap { code, reason in
    text.lines.enumerated().filter { $0.element.code.contains(code) }.map {
      Finding(path, $0.offset + 1, reason)
    }
  }
}

private let forbidden: [(code: String, reason: String)] =
  [("PropertyListSerialization", "it crashes on hostile bytes; use our codec")]
  // Another thread may release what it belongs to, and then the number is that of another file.
  + [").descriptor.rawValue", "lastHandle.descriptor.rawValue", "openParent().rawValue"].map {
    ($0, "the descriptor may be closed already; keep its owner in a constant")
  }

private let risks = ["try?", "try!", "@unchecked", "nonisolated(unsafe)", "fatalError("]

/// Returns whether the code has the text at the beginning of a word.
private func contains(_ code: String, word: String) -> Bool {
  guard strstr(code, word) != nil else { return false }
  var rest = Array(code.utf8)[...]
  var previous = UInt8(ascii: " ")
  while let first = rest.first {
    if !isNamePart(previous), rest.starts(with: word.utf8) { return true }
    previous = first
    rest = rest.dropFirst()
  }
  return false
}

private func commentBlock(above index: Int, in text: SourceText) -> String {
  var block: [String] = []
  for line in text.lines[..<index].reversed() {
    guard line.trimmedCode.isEmpty, !line.trimmedComment.isEmpty else { break }
    block.append(line.comment)
  }
  return block.reversed().joined(separator: " ")
}

private func isArgument(_ comment: String) -> Bool {
  let words = comment.split { " /*".contains($0) }.filter { $0.contains(where: \.isLetter) }
  guard let first = words.first else { return false }
  return words.count >= 4 && !["MARK:", "TODO:", "FIXME:"].contains(first)
    && !first.hasPrefix("swift-format")
}
