/// A target as declared in the manifest.
struct ManifestTarget: Equatable {
  let kind: String
  let name: String
  let dependencies: [String]
  let line: Int
}

/// Returns the targets of a manifest with their names and dependencies: `.target(…)`,
/// `.executableTarget(…)`, `.testTarget(…)` and `.systemLibrary(…)`, and the manifest's own
/// `room("Folder/Name", […])`, `program(…)`, `clients("Name", of: …)` and `test(…)`.
func targets(ofManifest manifest: String) -> [ManifestTarget] {
  let kinds: Set<String> = [
    "target", "executableTarget", "testTarget", "systemLibrary", "plugin", "macro",
  ]
  let helpers: Set<String> = ["room", "program", "clients", "test"]
  let tokens = manifestTokens(manifest)
  var targets: [ManifestTarget] = []
  var index = 1
  while index + 1 < tokens.count {
    defer { index += 1 }
    let (before, kind) = (tokens[index - 1].text, tokens[index].text)
    let isHelper = helpers.contains(kind) && before != "." && before != "func"
    guard isHelper || before == "." && kinds.contains(kind), tokens[index + 1].text == "(" else {
      continue
    }
    let end = closing(of: index + 1, in: tokens)
    let call = Array(tokens[(index + 2)..<end])
    // A room's first argument is its path, the second its dependencies.
    let named = isHelper ? call : argument("name", of: call)
    // The helpers themselves are declared with the name that they receive.
    guard let name = named.first(where: { $0.text.hasPrefix("\"") }) else { continue }
    let dependencies =
      isHelper
      ? Array(call.drop { !["[", "of"].contains($0.text) }.prefix { $0.text != "]" })
      : argument("dependencies", of: call)
    targets.append(
      ManifestTarget(
        kind: kind, name: unquoted(name.text).split(separator: "/").last.map(String.init) ?? "",
        dependencies: dependencies.filter { $0.text.hasPrefix("\"") }.map { unquoted($0.text) }
          .filter { !$0.contains("/") }, line: tokens[index].line))
    // A dependency `.target(name:)` within is not a declaration.
    index = end
  }
  return targets
}

/// Returns the manifest's dependencies that the table of layers does not allow.
func manifestFindings(_ manifest: String, path: String) -> [Finding] {
  var findings: [Finding] = []
  for target in targets(ofManifest: manifest) where !["testTarget", "test"].contains(target.kind) {
    // Support for tests, which lives among the tests, may use any layer.
    if target.name == "WormholeTestSupport" { continue }
    guard let allowed = Layers.allowed[target.name] else {
      findings.append(
        Finding(path, target.line, "the table of layers has no row for \(target.name)"))
      continue
    }
    for dependency in target.dependencies where !allowed.contains(dependency) {
      findings.append(
        Finding(path, target.line, "\(target.name) may not depend on \(dependency)"))
    }
  }
  return findings
}

/// Returns words, signs, and whole string literals, without comments.
private func manifestTokens(_ manifest: String) -> [Token] {
  var tokens: [Token] = []
  for (index, line) in manifest.split(separator: "\n", omittingEmptySubsequences: false)
    .enumerated()
  {
    var rest = line.drop { $0 == " " || $0 == "\t" }
    while let first = rest.first, !rest.hasPrefix("//") {
      var length = 1
      if first == "\"" {
        length = (rest.dropFirst().firstIndex(of: "\"").map { rest[..<$0].count } ?? 0) + 1
      } else if first.isLetter {
        length = rest.prefix { $0.isLetter || $0.isNumber || $0 == "_" }.count
      }
      tokens.append((String(rest.prefix(length)), index + 1))
      rest = rest.dropFirst(length).drop { $0 == " " || $0 == "\t" }
    }
  }
  return tokens
}

/// Returns the index of the parenthesis that closes the one at `open`.
private func closing(of open: Int, in tokens: [Token]) -> Int {
  var depth = 0
  for index in open..<tokens.count {
    if "([".contains(tokens[index].text) { depth += 1 }
    if ")]".contains(tokens[index].text) { depth -= 1 }
    if depth == 0 { return index }
  }
  return tokens.count
}

/// Returns the tokens of a labelled argument, up to the comma that ends it.
private func argument(_ label: String, of call: [Token]) -> [Token] {
  var depth = 0
  var found: [Token]?
  for (index, token) in call.enumerated() {
    if "([".contains(token.text) { depth += 1 }
    if ")]".contains(token.text) { depth -= 1 }
    if depth == 0, token.text == ",", let found { return found }
    if found != nil {
      found?.append(token)
    } else if depth == 0, token.text == label, index + 1 < call.count, call[index + 1].text == ":" {
      found = []
    }
  }
  return found ?? []
}

private func unquoted(_ text: String) -> String { String(text.dropFirst().dropLast()) }
