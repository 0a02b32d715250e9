/// The seam between the two engines: the package protocols of the rooms below to which a type of the
/// other engine conforms, directly or through another protocol.
///
/// It stays small, because each requirement is made twice, and is one more way for the engines to
/// differ. A requirement that others can answer is an extension; several getters of one thing are one
/// structure; two calls that differ in a flag are one with a parameter.
enum Seam {
  /// The rooms that may declare it.
  static let rooms: Set<String> = ["Wormhole", "WormholeToolkit", "WormholeInspection"]
  /// The room of the engine beside directories.
  static let engine = "WormholeEtcd"
  /// The most requirements of all its protocols together.
  static let bound = 120

  /// One of its protocols, and the number of requirements that it declares itself.
  struct Part: Hashable, CustomStringConvertible {
    let name: String
    let requirements: Int

    var description: String { "\(requirements) \(name)" }
  }

  /// Returns its protocols, those with the most requirements first.
  static func parts(declaredIn rooms: [SourceText], implementedIn engine: [SourceText]) -> [Part] {
    var declared: [String: (parents: Set<String>, requirements: Int)] = [:]
    for type in rooms.flatMap({ types(in: $0.tokens) }) where type.isPackageProtocol {
      declared[type.name] = (type.parents, type.requirements)
    }
    var names: Set<String> = []
    var rest = engine.flatMap { types(in: $0.tokens) }.flatMap(\.parents)
    while let name = rest.popLast() {
      guard names.insert(name).inserted else { continue }
      rest += declared[name]?.parents ?? []
    }
    return declared.filter { names.contains($0.key) }
      .map { Part(name: $0.key, requirements: $0.value.requirements) }
      .sorted { ($1.requirements, $0.name) < ($0.requirements, $1.name) }
  }

  /// Returns why it is too large; nil if it is not.
  static func finding(_ parts: [Part], bound: Int = bound) -> String? {
    let count = parts.map(\.requirements).reduce(0, +)
    guard count > bound else { return nil }
    return "the seam has \(count) requirements, and at most \(bound) are allowed:\n"
      + parts.map { "  \($0)" }.joined(separator: "\n")
  }

  /// A type, or an extension of one.
  private struct TypeText {
    let name: String
    let isPackageProtocol: Bool
    /// What it inherits from or conforms to.
    let parents: Set<String>
    /// The number of requirements, if it is a protocol.
    let requirements: Int
  }

  private static let kinds = Layers.types.subtracting(["typealias"]).union(["extension"])
  private static let members: Set<String> = ["func", "var", "init", "subscript"]

  private static func types(in tokens: [Token]) -> [TypeText] {
    tokens.indices.dropLast().compactMap { index in
      let (kind, name) = (tokens[index].text, tokens[index + 1].text)
      // A member of the type is a class's, or an import names one.
      guard kinds.contains(kind), !members.union(["let"]).contains(name),
        index == 0 || tokens[index - 1].text != "import"
      else { return nil }
      let head = tokens[(index + 2)...].prefix { $0.text != "{" }
      return TypeText(
        name: name,
        isPackageProtocol: kind == "protocol" && index > 0 && tokens[index - 1].text == "package",
        parents: parents(in: head),
        requirements: kind == "protocol" ? requirements(in: tokens[head.endIndex...]) : 0)
    }
  }

  /// - Parameter head: What is between the name and the body.
  private static func parents(in head: ArraySlice<Token>) -> Set<String> {
    var (depth, isList) = (0, false)
    var parents: Set<String> = []
    for token in head {
      switch token.text {
      case "<": depth += 1
      case ">": depth -= 1
      case "where": return parents
      case ":" where depth == 0: isList = true
      default: if isList, depth == 0 { parents.insert(token.text) }
      }
    }
    return parents
  }

  /// - Parameter body: From its brace on.
  private static func requirements(in body: ArraySlice<Token>) -> Int {
    var (braces, parentheses, count) = (0, 0, 0)
    for token in body {
      switch token.text {
      case "{": braces += 1
      case "}": braces -= 1
      case "(": parentheses += 1
      case ")": parentheses -= 1
      default: if braces == 1, parentheses == 0, members.contains(token.text) { count += 1 }
      }
      if braces == 0 { return count }
    }
    return count
  }
}
