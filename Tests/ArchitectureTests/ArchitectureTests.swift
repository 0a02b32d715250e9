import TestScopes
import Testing

@Suite("The sources", .blocking)
struct ArchitectureTests {
  private func expectNothing(_ check: (SourceText, SourceTree.File) -> [Finding]) throws {
    let files = try SourceTree.files.get()
    #expect(Set(files.map(\.target)).isSuperset(of: ["AppGroup", "SystemCalls", "Histories"]))
    for file in files {
      for finding in check(file.text, file) {
        Issue.record(Comment(rawValue: finding.description))
      }
    }
  }

  @Test("import only what their layer may")
  func layers() throws {
    try expectNothing { Layers.findings(in: $0, of: $1.target, path: $1.path) }
  }

  @Test("depend, by the manifest, on nothing that their layer may not import")
  func manifest() throws {
    let manifest = try SourceTree.manifest()
    let names = targets(ofManifest: manifest).map(\.name)
    #expect(Set(names).isSuperset(of: Layers.allowed.keys))
    for finding in manifestFindings(manifest, path: "Package.swift") {
      Issue.record(Comment(rawValue: finding.description))
    }
  }

  @Test("of façades and programs do not know that a container is a directory")
  func engine() throws {
    try expectNothing { EngineRules.findings(in: $0, path: $1.path) }
    let paths = try SourceTree.files.get().map(\.path)
    for exception in EngineRules.exceptions + EngineRules.pathUsers {
      #expect(paths.contains { $0.hasPrefix(exception.prefix) }, "\(exception) is no longer needed")
    }
    let text = SourceText("import SystemCalls\nlet a = container.url\nlet b = NameKind(.value)")
    let path = "Sources/Facades/Wormhole/F.swift"
    #expect(EngineRules.findings(in: text, path: path).map(\.line).sorted() == [1, 2, 3])
    #expect(EngineRules.findings(in: text, path: "Sources/Core/Queues/F.swift").isEmpty)
  }

  @Test("in one folder have at most 2,500 lines: a folder is one idea")
  func sizes() throws {
    var lines: [Substring: Int] = [:]
    for file in try SourceTree.files.get() {
      let folder = file.path.prefix(upTo: file.path.lastIndex(of: "/") ?? file.path.startIndex)
      lines[folder, default: 0] += file.text.lines.count
    }
    for (folder, count) in lines where count > 2_500 {
      Issue.record("\(folder) has \(count) lines: cut it where its walls are")
    }
  }

  @Test("never use PropertyListSerialization")
  func forbidden() throws {
    try expectNothing { forbiddenFindings(in: $0, path: $1.path) }
  }

  @Test("argue for everything that may hide an error, crash or race")
  func argued() throws {
    try expectNothing { unarguedFindings(in: $0, path: $1.path) }
  }

  @Test("cite only what is in the repository, and only rules that are written down")
  func citations() throws {
    let files = try SourceTree.files.get()
    let comments = try files + SourceTree.tests.get()
    for finding in comments.flatMap({ Citations.findings(in: $0.text, path: $0.path) })
    where !finding.path.hasPrefix("Tests/ArchitectureTests/") {
      Issue.record(Comment(rawValue: finding.description))
    }
    let page = try SourceTree.text(of: "Sources/Facades/AppGroup/AppGroup.docc/RulesOfTheLease.md")
    let core = files.filter { $0.path.hasPrefix("Sources/Core/") }
    let cited = core.reduce(into: Set<Int>()) { $0.formUnion(Citations.rules(in: $1.text)) }
    #expect(cited.isSuperset(of: [1, 2, 3, 4, 5]))
    for rule in cited { #expect(page.contains("### Rule \(rule):")) }
    let text = SourceText("// See DESIGN.\n// By rule 2, and rules 4 to 6.\nlet rule9 = \"§\"")
    #expect(Citations.findings(in: text, path: "F").map(\.line) == [1])
    #expect(Citations.rules(in: text) == [2, 4, 6])
  }

  @Test("document everything public")
  func documented() throws {
    try expectNothing { undocumentedFindings(in: $0, path: $1.path) }
  }

  @Test("show an example at every public type")
  func examples() throws {
    try expectNothing { exampleFindings(in: $0, path: $1.path) }
    let with = SourceText(
      "/// ```swift\n/// A()\n/// ```\n@MainActor\npublic final class A {\n  enum B {}\n}")
    #expect(exampleFindings(in: with, path: "F").isEmpty)
    let without =
      "/// A type.\n@frozen public struct A {}\nlet a = 1\npublic protocol B {}\n  public enum C {}"
    #expect(exampleFindings(in: SourceText(without), path: "F").map(\.line) == [2, 4, 5])
  }

  @Test("are tested on threads that may block, and not by exit tests")
  func suites() throws {
    let files = try SourceTree.tests.get()
    #expect(files.count > 100)
    for file in files {
      for finding in suiteFindings(in: file.text, path: file.path) {
        Issue.record(Comment(rawValue: finding.description))
      }
    }
    let text = SourceText(
      """
      @Suite("A", .enabled(if: true)) struct A {}
      @Suite(
        "B", .blocking) struct B {
        @Test func exit() async { await #expect(processExitsWith: .success) {} }
      }
      """)
    #expect(suiteFindings(in: text, path: "F").map(\.line) == [1, 4])
    let without = SourceText("struct A {\n  @Test func a() {}\n}")
    #expect(suiteFindings(in: without, path: "F").map(\.line) == [2])
  }
}
