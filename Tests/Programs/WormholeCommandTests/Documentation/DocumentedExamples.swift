import Foundation

/// The Swift examples in the documentation: of articles, and of the comments of declarations.
struct DocumentedExample: Sendable, CustomStringConvertible {
  /// The path from the package's root.
  let path: String
  /// The number of the example's first line.
  let line: Int
  /// The module whose reader sees it.
  let module: String
  let text: String

  var description: String { "\(path):\(line)" }

  /// Whether the compiler cannot check it here: a manifest and the tests of a page are checked with that
  /// page, and the bridges to swift-log and swift-metrics need these packages.
  var isLeftOut: Bool {
    text.hasPrefix("// swift-tools-version")
      || ["Testing", "Logging", "Metrics"].contains { text.contains("import \($0)\n") }
  }

  /// Every example, sorted by its place.
  static let all = Result {
    var found: [DocumentedExample] = []
    for folder in ["Sources/Core", "Sources/Facades"] {
      let paths = try FileManager.default.subpathsOfDirectory(
        atPath: Readme.root.appending(path: folder).path)
      for path in paths.sorted() where path.hasSuffix(".md") || path.hasSuffix(".swift") {
        found += try examples(ofFile: "\(folder)/\(path)", target: path)
      }
    }
    return found
  }

  private static func examples(ofFile path: String, target: String) throws -> [Self] {
    let text = try String(contentsOf: Readme.root.appending(path: path), encoding: .utf8)
    let room = String(target.prefix { $0 != "/" })
    // What is public there is exported again.
    let module = room == "WormholeSystem" ? "Wormhole" : room
    let blocks = path.hasSuffix(".md") ? Readme.parse(text, path) : comments(text, path)
    return blocks.filter { $0.language == "swift" }.map {
      DocumentedExample(path: path, line: $0.line, module: module, text: $0.text)
    }
  }

  /// Returns the blocks in the comments of declarations, each at its line of the file.
  private static func comments(_ text: String, _ path: String) -> [Readme.Block] {
    let lines = text.split(separator: "\n", omittingEmptySubsequences: false).map { line in
      let bare = line.drop { $0 == " " }
      guard bare.hasPrefix("///") else { return "" }
      return String(bare.dropFirst(bare.hasPrefix("/// ") ? 4 : 3))
    }
    return Readme.parse(lines.joined(separator: "\n"), path)
  }
}

extension DocumentedExample {
  /// The imports of an example that names none, and the constants that it may use without making them.
  private var surroundings: (imports: [String], parameters: String) {
    let others = [
      "WormholeInspection": ["Wormhole"], "WormholeEtcd": ["Wormhole"],
      "WormholeFiles": ["Wormhole"],
      "GroupDefaults": ["Wormhole"], "WormholePeers": ["Wormhole"],
      "WatchConnectivity": ["Wormhole"], "ConnectivityTesting": ["Wormhole", "WatchConnectivity"],
    ][module, default: []]
    let hasContainer = module == "Wormhole" || others.contains("Wormhole")
    var parameters = hasContainer ? ["container: SharedContainer", "file: URL"] : ["file: URL"]
    if module == "ConnectivityTesting" { parameters.append("scene: TestScene") }
    return (["Foundation", module] + others, parameters.joined(separator: ", "))
  }

  /// A source file that the compiler accepts if and only if it accepts the example: its statements are
  /// in a function, which is asynchronous if the example awaits something, and its lines keep their
  /// numbers in messages.
  ///
  /// Declarations that cannot be in a function stand by themselves; then `@main` is left out, because a
  /// module has one.
  func source(_ number: Int) -> String {
    let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
    let place = "#sourceLocation(file: \"\(path)\", line: \(line))\n"
    let isOfFile = lines.contains { line in
      ["extension ", "public ", "  import ", "@_exported "].contains { line.hasPrefix($0) }
    }
    if isOfFile { return place + text.replacing("@main ", with: "") + "#sourceLocation()\n" }
    let imports = lines.filter { $0.hasPrefix("import ") }
    let body = lines.map { $0.hasPrefix("import ") ? "" : $0.replacing("@main ", with: "") }
    let surroundings = surroundings
    let head =
      imports.isEmpty
      ? surroundings.imports.map { "import \($0)" } : imports.map(String.init)
    let parameters = imports.isEmpty ? surroundings.parameters : ""
    let effects = text.contains("await ") ? "async throws" : "throws"
    return head.joined(separator: "\n") + "\nfunc example\(number)(\(parameters)) \(effects) {\n"
      + place
      + body.joined(separator: "\n") + "#sourceLocation()\n}\n"
  }
}
