import Foundation

/// What a page of the documentation asks its reader to type, and what it shows as output.
///
/// A block of `sh` is input: of the first shell or the second, as the line above it says; otherwise of
/// the same one as before. A block of `text` after it is its output, and one below a line that names the first
/// shell is what the program that runs there prints meanwhile.
enum ConsolePage {
  /// Returns the input and output of a page, or of a section of it.
  static func entries(_ blocks: [Readme.Block]) -> [Console.Entry] {
    var entries: [Console.Entry] = []
    var shell = 1
    for block in blocks {
      let said = Self.shells(block.lead)
      let lines = block.text.split(separator: "\n")
      switch block.language {
      case "sh":
        for named in said.isEmpty ? [shell] : said {
          entries.append(Console.Entry(shell: named, command: block.text))
        }
        shell = said.last ?? shell
      case "text" where said.isEmpty:
        if let last = entries.indices.last { entries[last].lines = lines }
      case "text":
        entries.append(Console.Entry(shell: said[0], command: nil, lines: lines))
      default: break
      }
    }
    return entries
  }

  private static func shells(_ lead: String) -> [Int] {
    let text = lead.lowercased()
    if text.contains("both shells") { return [0, 1] }
    if text.contains("first shell") { return [0] }
    return text.contains("second shell") ? [1] : []
  }
}
