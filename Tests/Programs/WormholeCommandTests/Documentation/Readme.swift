import Foundation
import WormholeSystem
import WormholeTestSupport

/// The parts of README.md.
struct Readme {
  /// The text between two fences.
  struct Block: Sendable, CustomStringConvertible {
    var path = "README.md"
    let language: String
    let line: Int
    let text: String
    /// The heading of the section that it is in.
    var section = ""
    /// The paragraph directly above it, in one line.
    var lead = ""

    var description: String { "\(path):\(line)" }
  }

  static let root = URL(filePath: Checkout.path)

  /// Every block, in order.
  static let blocks = known("README.md")

  /// The blocks of a page that is part of the repository.
  static func known(_ path: String) -> [Block] {
    do {
      return try blocks(ofPage: path)
    } catch {
      preconditionFailure("\(path) is part of the repository: \(error)")
    }
  }

  /// The text of a file, by its path from the package's root.
  static func text(_ path: String) throws -> String {
    try String(contentsOf: root.appending(path: path), encoding: .utf8)
  }

  static func blocks(of language: String) -> [Block] { blocks.filter { $0.language == language } }

  /// The blocks of a page, by its path from the package's root.
  static func blocks(ofPage path: String) throws -> [Block] {
    parse(try text(path), path)
  }

  /// Returns the blocks of a text in Markdown, in order.
  static func parse(_ text: String, _ path: String) -> [Block] {
    var blocks: [Block] = []
    var open: (language: String, line: Int, lines: [Substring])?
    var section = ""
    var paragraph: [Substring] = []
    var isNewParagraph = true
    for (index, line) in text.split(separator: "\n", omittingEmptySubsequences: false).enumerated()
    {
      guard line.hasPrefix("```") else {
        open?.lines.append(line)
        if open == nil, !line.isEmpty {
          if isNewParagraph { paragraph = [] }
          paragraph.append(line)
        }
        isNewParagraph = line.isEmpty
        if open == nil, line.hasPrefix("## ") { section = String(line.dropFirst(3)) }
        continue
      }
      if let block = open {
        let text = block.lines.joined(separator: "\n") + "\n"
        blocks.append(
          Block(
            path: path, language: block.language, line: block.line, text: text, section: section,
            lead: paragraph.joined(separator: " ")))
        open = nil
        paragraph = []
      } else {
        open = (String(line.dropFirst(3)), index + 2, [])
      }
    }
    return blocks
  }
}
