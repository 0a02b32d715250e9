import Testing
import WormholeTestSupport

@Suite("The sources", .blocking)
struct ArchitectureTests {
  private func expectNothing(_ check: (SourceText, SourceTree.File) -> [Finding]) throws {
    let files = try SourceTree.files.get()
    #expect(
      Set(files.map(\.target)).isSuperset(of: ["GroupDefaults", "Wormhole", "WormholeSystem"]))
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

  @Test("of one room form no circle of folders")
  func circles() throws {
    let rooms = Dictionary(grouping: try SourceTree.files.get(), by: \.target)
    #expect(Set(rooms.keys).isSuperset(of: ["Wormhole", "WormholePeers", "WormholeCommand"]))
    for files in rooms.values {
      let inside = files.map { file in
        let parts = file.path.split(separator: "/").dropFirst(3).dropLast()
        return (folder: String(parts.first ?? ""), path: file.path, text: file.text)
      }
      for finding in FolderCircles.findings(in: inside) {
        Issue.record(Comment(rawValue: finding.description))
      }
    }
    // A uses B, B uses C, and C uses A; D is only used.
    let found = FolderCircles.findings(in: [
      ("A", "a", SourceText("struct One { let two: Two; let four: Four }")),
      ("B", "b", SourceText("struct Two {\n  var three: Three\n  var a: Other.One }")),
      ("C", "c", SourceText("enum Three { case one(One) }")),
      ("D", "d", SourceText("struct Four {}")),
    ])
    #expect(
      found.map(\.description) == [
        "a:1: A uses Two of B, which leads back to it",
        "b:2: B uses Three of C, which leads back to it",
        "c:1: C uses One of A, which leads back to it",
      ])
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

  @Test("of no library but its own carry the engine for etcd, and of the core only four")
  func otherEngine() throws {
    let all = targets(ofManifest: try SourceTree.manifest())
    let direct = Dictionary(uniqueKeysWithValues: all.map { ($0.name, Set($0.dependencies)) })
    func carried(_ room: String) -> Set<String> {
      direct[room, default: []].reduce(into: [room]) { $0.formUnion(carried($1)) }
    }
    let libraries = all.filter { $0.kind == "room" }.map(\.name)
    #expect(Set(libraries).isSuperset(of: ["Wormhole", "WormholeEtcd", "WatchConnectivity"]))
    let carriers = libraries.filter { carried($0).contains("WormholeEtcd") }
    // The workshop drives clusters; no client can depend on it.
    #expect(Set(carriers) == ["WormholeEtcd", "WormholeWorkshop"])
    // What a client builds: no inspection, no copying and no original that it does not name.
    let core: Set = ["Wormhole", "WormholePropertyLists", "WormholeSystem", "WormholeShims"]
    #expect(carried("Wormhole") == core)
    let files = core.union(["WormholeToolkit", "WormholeFiles"])
    #expect(carried("WormholeFiles") == files)
    #expect(carried("NSFileCoordination") == files.union(["NSFileCoordination"]))
  }

  @Test("of façades and programs do not know that a container is a directory")
  func engine() throws {
    let system = try SourceTree.files.get().filter {
      $0.target == "WormholeSystem" && !$0.path.contains("/Monitoring/")
        || $0.target == "WormholeToolkit" && !$0.path.contains("/Calls/")
    }
    let calls = Set(
      system.flatMap {
        Layers.declarations(in: $0.text.tokens, of: Layers.types.union(["func"]))
      })
    #expect(calls.isSuperset(of: ["FileDescriptor", "fileStatus", "Program"]))
    try expectNothing { EngineRules.findings(in: $0, path: $1.path, calls: calls) }
    let paths = try SourceTree.files.get().map(\.path)
    for exception in EngineRules.exceptions + EngineRules.pathUsers {
      #expect(paths.contains { $0.hasPrefix(exception.prefix) }, "\(exception) is no longer needed")
    }
    let text = SourceText(
      "import WormholeSystem; let c = Program.name\nlet a = container.url\nlet b = NameKind(.value)"
    )
    let path = "Sources/Facades/GroupDefaults/F.swift"
    #expect(
      EngineRules.findings(in: text, path: path, calls: calls).map(\.line).sorted() == [1, 2, 3])
    #expect(EngineRules.findings(in: text, path: "Sources/Core/W/F.swift", calls: calls).isEmpty)
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
    let text = SourceText(
      "/// Not PropertyListSerialization.\nlet a = \"PropertyListSerialization\"\n"
        + "PropertyListSerialization.data()\nlet a = try root.handle().descriptor.rawValue\n"
        + "let handle = try root.handle()\nlet a = handle.descriptor.rawValue")
    #expect(forbiddenFindings(in: text, path: "F").map(\.line) == [3, 4])
  }

  @Test("calculate with the times of files and of the clock in one place")
  func times() throws {
    try expectNothing { timeFindings(in: $0, path: $1.path) }
    let text = SourceText(
      "let a = realTime().seconds - b.modifiedSeconds\nlet c = UInt64(d) * 1_000_000_000\n"
        + "let e = 86_400 * 1_000_000_000\n// changedSeconds - 1\nlet f = g.changedSeconds == 1")
    #expect(timeFindings(in: text, path: "Sources/Core/Wormhole/F.swift").map(\.line) == [1, 2])
    #expect(timeFindings(in: text, path: "Sources/Core/WormholeSystem/F.swift").isEmpty)
  }

  @Test("argue for everything that may hide an error, crash or race")
  func argued() throws {
    try expectNothing { unarguedFindings(in: $0, path: $1.path) }
    let without = SourceText(
      "// It fails only if nobody listens.\n\ntry? a()\n// fine\nlet a = try! b()\n"
        + "let why = \"// this is no comment\"\nfinal class A: @unchecked Sendable {}\n"
        + "// MARK: - Things that may fail\nfatalError(\"never\")\nprint(\"\\(try? a())\")")
    #expect(unarguedFindings(in: without, path: "F").map(\.line) == [3, 5, 7, 9, 10])
    let with = SourceText(
      "// It fails only\n// if nobody listens.\ntry? a()\nlet a = try! b()  // It is there by now.\n"
        + "/* It is used by one only. */\nnonisolated(unsafe) var c = 1\nretry?.cancel(\"try! b\")")
    #expect(unarguedFindings(in: with, path: "F").isEmpty)
  }

  @Test("cite only what is in the repository, and only rules that are written down")
  func citations() throws {
    let files = try SourceTree.files.get()
    let comments = try files + SourceTree.tests.get()
    for finding in comments.flatMap({ Citations.findings(in: $0.text, path: $0.path) })
    where !finding.path.hasPrefix("Tests/ArchitectureTests/") {
      Issue.record(Comment(rawValue: finding.description))
    }
    let page = try SourceTree.text(of: "Sources/Core/Wormhole/Wormhole.docc/RulesOfTheLease.md")
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
    let without = SourceText(
      "// A thing.\npublic struct A {\n///\n  public private(set) var a = 1\n/// A thing.\n\n"
        + "@discardableResult public func a()\n/// A thing.\nlet b = 1\nopen class func c()\n"
        + "/// A thing.\npublic extension A {")
    #expect(undocumentedFindings(in: without, path: "F").map(\.line) == [2, 4, 7, 10, 12])
    let with = SourceText(
      "/// A thing.\n@available(\n  *, deprecated,\n  message: \"x (y)\"\n)\npublic func a()\n"
        + "public import A\npackage func b()\npublic var description: String {\nopen(path, flags)")
    #expect(undocumentedFindings(in: with, path: "F").isEmpty)
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
