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

  @Test("never use PropertyListSerialization")
  func forbidden() throws {
    try expectNothing { forbiddenFindings(in: $0, path: $1.path) }
  }

  @Test("argue for everything that may hide an error, crash or race")
  func argued() throws {
    try expectNothing { unarguedFindings(in: $0, path: $1.path) }
  }

  @Test("document everything public")
  func documented() throws {
    try expectNothing { undocumentedFindings(in: $0, path: $1.path) }
  }

  @Test("are tested where tests may block, and by no exit test")
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
