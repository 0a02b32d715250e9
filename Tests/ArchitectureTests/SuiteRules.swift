/// Returns violations of the rules for suites.
///
/// A suite without `.blocking` runs on the threads of tasks, and blocks them. The library's exit
/// tests wait for any child of the process: beside other tests they may wait for ever.
func suiteFindings(in text: SourceText, path: String) -> [Finding] {
  let (hasSuite, hasExit) = (text.hasCode("@Suite"), text.hasCode("processExitsWith"))
  guard hasSuite || hasExit || text.hasCode("@Test") else { return [] }
  var findings: [Finding] = []
  // The line of an attribute that continues on further lines.
  var open: Int?
  for (index, line) in text.lines.enumerated() {
    if hasExit, line.code.contains("processExitsWith") {
      findings.append(Finding(path, index + 1, "say `.ownProcess` instead of an exit test"))
    }
    if line.trimmedCode.hasPrefix("@Suite") { open = index }
    guard let start = open else { continue }
    if line.code.contains(".blocking") {
      open = nil
    } else if ["struct ", "class ", "enum ", "actor "].contains(where: line.code.contains) {
      findings.append(Finding(path, start + 1, "say `.blocking`, of TestScopes, in `@Suite(…)`"))
      open = nil
    }
  }
  if findings.isEmpty, !hasSuite,
    let test = text.lines.firstIndex(where: { $0.trimmedCode.hasPrefix("@Test") }),
    !text.lines.contains(where: { $0.trimmedCode.hasPrefix("extension ") })
  {
    findings.append(Finding(path, test + 1, "tests belong to a type with `@Suite(…, .blocking)`"))
  }
  return findings
}
