import Testing
import WormholeTestSupport

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
    #expect(Layers.findings(in: SourceText(text), of: "GroupDefaults", path: "F.swift").count == 1)
    #expect(Layers.findings(in: SourceText(text), of: "WormholeSystem", path: "F.swift").isEmpty)
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

  @Test("reads targets and their dependencies from a manifest")
  func manifest() {
    let manifest = """
      let package = Package(
        name: "wormhole",
        products: [.library(name: "Wormhole", targets: ["Wormhole"])],
        targets: [
          .systemLibrary(name: "WormholeShims"),
          // .target(name: "Gone", dependencies: ["Wormhole"]),
          .target(
            name: "Wormhole",
            dependencies: ["WormholeSystem", .target(name: "WormholeFiles"),
              .product(name: "Atomics", package: "swift-atomics")], path: "Sources/Wormhole",
            exclude: ["WormholePeers.md"]),
          .testTarget(name: "WormholeTests", dependencies: ["Wormhole", "WormholeFiles"]),
          room("Core/WormholeEtcd", ["WormholeSystem", "WormholeFiles"]),
          clients("WormholeWatchClients", of: "Communicator", "Some/Folder"),
        ])
      func room(_ path: String, _ dependencies: [Target.Dependency]) -> Target {}
      """
    let found = targets(ofManifest: manifest)
    #expect(
      found.map(\.name) == [
        "WormholeShims", "Wormhole", "WormholeTests", "WormholeEtcd", "WormholeWatchClients",
      ])
    #expect(
      found.map(\.kind) == ["systemLibrary", "target", "testTarget", "room", "clients"])
    #expect(
      found[1].dependencies == ["WormholeSystem", "WormholeFiles", "Atomics", "swift-atomics"])
    #expect(
      manifestFindings(manifest, path: "Package.swift").map(\.description) == [
        "Package.swift:7: Wormhole may not depend on WormholeFiles",
        "Package.swift:7: Wormhole may not depend on Atomics",
        "Package.swift:7: Wormhole may not depend on swift-atomics",
        "Package.swift:13: WormholeEtcd may not depend on WormholeFiles",
        "Package.swift:14: WormholeWatchClients may not depend on Communicator",
      ])
    let strange = ".executableTarget(name: \"Strange\")"
    #expect(manifestFindings(strange, path: "Package.swift").count == 1)
  }
}
