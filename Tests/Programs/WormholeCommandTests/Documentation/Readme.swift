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

/// A package of a reader that uses this one's products: as `swift build` makes it, but with the
/// modules and objects that were built beside the tests.
struct ReaderPackage {
  struct Outcome {
    let isBuilt: Bool
    let said: String

    struct Failure: Error { let said: String }
  }

  /// The objects of the library, of sources that are there: a build keeps the objects of those that
  /// were moved or renamed.
  private static func objects(in built: String) throws -> [String] {
    var objects: [String] = []
    for group in ["Sources/Core", "Sources/Facades"] {
      let folder = Readme.root.appending(path: group).path
      for path in try FileManager.default.subpathsOfDirectory(atPath: folder)
      where path.hasSuffix(".swift") {
        let parts = path.split(separator: "/")
        objects.append(built + parts[0] + ".build/" + parts[parts.count - 1] + ".o")
      }
    }
    return objects
  }

  let directory: String

  /// The words of every call of the compiler: the library's modules are found as they were built.
  private static func compiler(_ module: String, _ built: String) -> [String] {
    [
      "swiftc", "-swift-version", "6", "-module-name", module,
      "-I", built + "Modules", "-I", Readme.root.appending(path: "Sources/Core/WormholeShims").path,
    ]
  }

  /// Checks files of one module, without building anything.
  func check(_ sources: [String: String]) throws -> Outcome {
    for (name, source) in sources { try ItemText.write(source, to: "\(directory)/\(name).swift") }
    let files = sources.keys.sorted().map { "\(directory)/\($0).swift" }
    return try run(
      Self.compiler("Examples", try BuiltProgram.path("")) + [
        "-typecheck", "-parse-as-library", "-wmo",
      ]
        + files)
  }

  /// Builds a program of one file.
  ///
  /// - Parameters:
  ///   - isWhole: Whether it is linked; otherwise it is only checked.
  ///   - isArchived: Whether it is linked with a static archive of the library's objects.
  func build(
    _ source: String, as name: String, isWhole: Bool = true, isArchived: Bool = false
  ) throws -> Outcome {
    let hasMain = source.contains("@main")
    let folder = "\(directory)/\(name)-sources"
    try makeDirectory(folder)
    // A reader's file name: a file with `@main` is any but main.swift.
    let file = "\(folder)/\(hasMain ? name : "main").swift"
    try ItemText.write(source, to: file)
    let built = try BuiltProgram.path("")
    var words = Self.compiler(name, built) + ["-warnings-as-errors", file]
    if hasMain { words.append("-parse-as-library") }
    if isWhole {
      words += ["-Onone", "-use-ld=lld", "-o", "\(directory)/\(name)"]
      let objects = try Self.objects(in: built)
      words += isArchived ? [try archive(objects)] : objects
    } else {
      words.append("-typecheck")
    }
    return try run(words)
  }

  private func archive(_ objects: [String]) throws -> String {
    let path = directory + "/library.a"
    let outcome = try run(["ar", "rcs", path] + objects)
    guard outcome.isBuilt else { throw Outcome.Failure(said: outcome.said) }
    return path
  }

  private func run(_ words: [String]) throws -> Outcome {
    let pipe = try makePipe()
    let compiler = try ChildProcess(
      "timeout", ["3600"] + words,
      environment: CompilerRun.environment(leavingFilesIn: directory), output: pipe.write.rawValue,
      errors: pipe.write.rawValue)
    let reader = pipe.takeRead()
    let said = try reader.descriptor.readToEnd(expectedBytes: 0, maximumBytes: 1 << 20)
    let end = try compiler.wait(until: CompilerRun.deadline)
    return Outcome(isBuilt: end == .exited(0), said: String(decoding: said, as: UTF8.self))
  }
}
