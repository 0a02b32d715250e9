import Foundation
import Testing
import WormholeSystem
import WormholeTestSupport
import WormholeToolkit

/// The page "Test both sides" and the template of a repository, as their reader uses them.
@Suite("The page \"Test both sides\"", .blocking)
struct PageTests {
  private static let root = URL(filePath: Checkout.path)

  private static func text(_ path: String) throws -> String {
    try String(contentsOf: root.appending(path: path), encoding: .utf8)
  }

  /// The blocks of the page in a language.
  private static func blocks(
    _ language: String, of page: String = "TestBothSides"
  ) throws -> [String] {
    let page = try text(
      "Sources/Facades/ConnectivityTesting/ConnectivityTesting.docc/\(page).md")
    return page.components(separatedBy: "```\(language)\n").dropFirst().map {
      $0.components(separatedBy: "```")[0]
    }
  }

  @Test(
    "shows an app and its tests as they are compiled and run here",
    arguments: ["StepCounter/StepCounter.swift", "Tests/StepCounterTests.swift"])
  func sources(path: String) throws {
    // Here the app's module has a name of its own, because a package graph has each name once.
    let text = try Self.text("Tests/BothSides/" + path)
      .replacing("  import WormholeStepCounter\n", with: "")
      .replacing(
        "import ConnectivityTesting\n", with: "import ConnectivityTesting\n  import StepCounter\n")
    #expect(try Self.blocks("swift").contains(text))
  }

  @Test("WatchConnectivityInCI shows a test as it is compiled and run here")
  func example() async throws {
    let text = try Self.text("Tests/Facades/ConnectivityTestingTests/PageExample.swift")
    #expect(try Self.blocks("swift", of: "WatchConnectivityInCI").contains(text))
    try await aWatchThatDiesLosesNothing()
  }

  /// The manifest of the page, and that of the template.
  private static func manifests() throws -> [String] {
    let page = try #require(try blocks("swift").first { $0.contains("swift-tools") })
    return [page, try text("Fixtures/template/Package.swift")]
  }

  @Test("has a manifest that the package manager reads, with our products on Linux only")
  func manifest() throws {
    for manifest in try Self.manifests() { try check(manifest) }
  }

  private func check(_ manifest: String) throws {
    let directory = try TemporaryDirectory()
    try Data(manifest.utf8).write(to: URL(filePath: directory.path + "/Package.swift"))
    let pipe = try makePipe()
    let tool = try ChildProcess(
      "timeout", ["3600", "swift", "package", "--package-path", directory.path, "dump-package"],
      environment: CompilerRun.environment(leavingFilesIn: directory.path),
      output: pipe.write.rawValue)
    let reader = pipe.takeRead()
    let said = try reader.descriptor.readToEnd(expectedBytes: 0, maximumBytes: 1 << 20)
    #expect(try tool.wait(until: CompilerRun.deadline) == .exited(0))
    let dump = try #require(
      try JSONSerialization.jsonObject(with: Data(said)) as? [String: Any])
    let targets = try #require(dump["targets"] as? [[String: Any]])
    let products = targets.flatMap { $0["dependencies"] as? [[String: Any]] ?? [] }
      .compactMap { $0["product"] as? [Any] }
    #expect(
      Set(products.map { $0[0] as? String }) == ["WatchConnectivity", "ConnectivityTesting"])
    for product in products {
      let condition = product.compactMap { $0 as? [String: Any] }.first {
        $0["platformNames"] != nil
      }
      #expect(condition?["platformNames"] as? [String] == ["linux"])
    }
  }

  @Test("names the version of Swift that this package needs")
  func versions() throws {
    let line = try #require(try Self.text("Package.swift").split(separator: "\n").first)
    let version = line.split(separator: " ").last ?? ""
    for manifest in try Self.manifests() { #expect(manifest.hasPrefix(line)) }
    let workflow = try Self.text("Fixtures/template/.github/workflows/test.yml")
    for block in try Self.blocks("Dockerfile") + Self.blocks("yaml") + [workflow] {
      #expect(block.contains("docker.io/library/swift:\(version)\n"))
      #expect(block.contains("swift") && block.contains("test"))
    }
  }
}
