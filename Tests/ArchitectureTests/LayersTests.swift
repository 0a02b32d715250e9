import TestScopes
import Testing

@Suite("The check of layers", .blocking)
struct LayersTests {
  @Test(
    "recognizes every form of import",
    arguments: [
      "import Glibc", "public import Glibc", "package import Glibc", "internal import Glibc",
      "@testable import Glibc", "@_exported import Glibc", "@preconcurrency public import Glibc",
      "@_spi(Some) import Glibc", "@_exported\nimport Glibc", "import struct Glibc.stat",
      "import func Glibc.open", "private import class Glibc.X", "import Glibc.stdio",
      "import `Glibc`", "let a = 1; import Glibc", "  import   Glibc  // why",
      "import /* here */ Glibc", "#if canImport(Glibc)\n#endif", "#elseif canImport( Glibc )",
      "#if os(Linux) && canImport(Glibc, _version: 2)", "import\nGlibc",
    ])
  func forms(text: String) {
    #expect(imports(of: SourceText(text)).map(\.module) == ["Glibc"])
    #expect(Layers.findings(in: SourceText(text), of: "AppGroup", path: "F.swift").count == 1)
    #expect(Layers.findings(in: SourceText(text), of: "SystemCalls", path: "F.swift").isEmpty)
  }

  @Test("finds several imports, each with its line")
  func several() {
    let text = SourceText("// import C\nimport A; import B\n\n@testable import struct D.E\n")
    #expect(
      imports(of: text) == [
        Import(module: "A", line: 2), Import(module: "B", line: 2), Import(module: "D", line: 4),
      ])
    #expect(
      Layers.findings(in: text, of: "Histories", path: "Sources/F.swift").map(\.description) == [
        "Sources/F.swift:2: Histories may not import A",
        "Sources/F.swift:2: Histories may not import B",
        "Sources/F.swift:4: Histories may not import D",
      ])
  }

  @Test(
    "ignores everything else",
    arguments: [
      "// import Glibc", "/* import Glibc */", "let a = \"import Glibc\"", "value.import(Glibc)",
      "call(import: Glibc)", "let important = Glibc", "let text = \"\"\"\nimport Glibc\n\"\"\"",
    ])
  func others(text: String) {
    #expect(imports(of: SourceText(text)).isEmpty)
  }

  @Test(
    "refuses modules above, beside or outside",
    arguments: [
      ("Wormhole", "SystemCalls"), ("Containers", "Presences"), ("AppGroup", "Wormhole"),
      ("PropertyLists", "SystemCalls"),
      ("SystemCalls", "PropertyLists"), ("SystemCalls", "FoundationEssentials"),
      ("AppGroup", "Foundation"), ("Histories", "FoundationEssentials"), ("Wormhole", "Musl"),
      ("Torture", "Glibc"), ("Benchmarks", "CSystemCalls"), ("NewLayer", "Synchronization"),
    ])
  func refused(target: String, module: String) {
    let text = SourceText("import \(module)")
    #expect(Layers.findings(in: text, of: target, path: "F.swift").count == 1)
  }

  @Test("reads targets and their dependencies from a manifest")
  func manifest() {
    let manifest = """
      let package = Package(
        name: "wormhole",
        products: [.library(name: "Containers", targets: ["Containers"])],
        targets: [
          .systemLibrary(name: "CSystemCalls"),
          // .target(name: "Gone", dependencies: ["Wormhole"]),
          .target(
            name: "Containers",
            dependencies: ["SystemCalls", .target(name: "Wormhole"),
              .product(name: "Atomics", package: "swift-atomics")], path: "Sources/Containers",
            exclude: ["SystemCalls.md"]),
          .testTarget(name: "ContainersTests", dependencies: ["Containers", "Histories"]),
        ])
      """
    let found = targets(ofManifest: manifest)
    #expect(found.map(\.name) == ["CSystemCalls", "Containers", "ContainersTests"])
    #expect(found.map(\.kind) == ["systemLibrary", "target", "testTarget"])
    #expect(found[1].dependencies == ["SystemCalls", "Wormhole", "Atomics", "swift-atomics"])
    #expect(
      manifestFindings(manifest, path: "Package.swift").map(\.description) == [
        "Package.swift:7: Containers may not depend on Wormhole",
        "Package.swift:7: Containers may not depend on Atomics",
        "Package.swift:7: Containers may not depend on swift-atomics",
      ])
    let strange = ".executableTarget(name: \"Strange\")"
    #expect(manifestFindings(strange, path: "Package.swift").count == 1)
  }
}
