import Foundation
import Testing
import WormholeSystem
import WormholeTestSupport
import WormholeToolkit

/// SwiftPM wants the names of all targets of a package graph to be different.
@Suite("A package that depends on this one", .blocking)
struct PackageGraphTests {
  /// The names that this package's targets had, or that its folders have: plain words, which other
  /// packages use as well. vapor/queues has a target `Queues`.
  private static let words = """
    App Attachments Benchmarks CCurl CSystemCalls Calls Channel Claims Client CinemaTime Container \
    Containers Coordinator Copying Digests Entries EtcdClient FileClaims FileCoordination FileTrees \
    HTTP HTTPTransfers Histories Hooks Inspection KeyValueObserving Launching Leases LineProcesses \
    LocalEtcd Logs Measurements Monitoring Notifications Pairing PeerConnectivity PeerLaunching \
    Presences Processes PropertyLists Publications QueueFiles Queues RivalCalls StepCounter System \
    SystemCalls Terminals TestScopes TestSupport Torture Values WatchPairing participant
    """.split(separator: " ").map(String.init)

  private let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory() }

  private static let here = "(name: \"wormhole\", path: \"\(SourceTree.root.path)\")"

  // The smallest product, because names collide with the targets of the whole package. Each word is in one
  // of the two packages, because the package manager compares the names of all of them in the same way.
  @Test(
    "is built with targets of its own and of another dependency that have plain names, and not with one of ours"
  )
  func builds() throws {
    let half = Self.words.count / 2
    let (own, others) = (Self.words.prefix(half), Self.words.dropFirst(half))
    try make("other", targets: Array(others), isLibrary: true)
    try make(
      "app", targets: own + ["Program"], packages: [Self.here, "(path: \"../other\")"],
      products: [
        ".product(name: \"WormholePropertyLists\", package: \"wormhole\")",
        ".product(name: \"Library\", package: \"other\")",
      ])
    let imports = (others + ["WormholePropertyLists"]).map { "import \($0)\n" }.joined()
    try (imports + "let value: PropertyListValue = [7]\n").write(
      toFile: directory.path + "/app/Sources/Program/Program.swift", atomically: true,
      encoding: .utf8)
    let output = try said("swift build", "app")
    #expect(output.contains("Build complete!"), "\(output)")

    let use = ".product(name: \"Wormhole\", package: \"wormhole\")"
    try make("twice", targets: ["Wormhole"], packages: [Self.here], products: [use])
    #expect(try said("swift package show-dependencies", "twice").contains("conflicting name"))
  }

  /// Targets in Swift; the others are in C, which is built in a tenth of the time.
  private static let inSwift: Set = ["Library", "Notifications", "Program", "Queues", "Wormhole"]

  /// Writes a package whose targets have one empty file each.
  private func make(
    _ name: String, targets: [String], packages: [String] = [], products: [String] = [],
    isLibrary: Bool = false
  ) throws {
    for target in targets {
      let folder = directory.path + "/\(name)/Sources/\(target)"
      let files =
        Self.inSwift.contains(target) ? ["/Empty.swift"] : ["/empty.c", "/include/\(target).h"]
      try FileManager.default.createDirectory(
        atPath: folder + "/include", withIntermediateDirectories: true)
      for file in files {
        try "".write(toFile: folder + file, atomically: true, encoding: .utf8)
      }
    }
    let declared = targets.map {
      ".target(name: \"\($0)\", dependencies: [\(products.joined(separator: ", "))])"
    }
    let offered = isLibrary ? "products: [.library(name: \"Library\", targets: \(targets))]," : ""
    let manifest = """
      // swift-tools-version: 6.2
      import PackageDescription
      let package = Package(
        name: "\(name)", \(offered)
        dependencies: [\(packages.map { ".package" + $0 }.joined(separator: ", "))],
        targets: [\(declared.joined(separator: ", "))])
      """
    try manifest.write(
      toFile: directory.path + "/\(name)/Package.swift", atomically: true, encoding: .utf8)
  }

  private func said(_ command: String, _ package: String) throws -> String {
    let place = directory.path
    let process = try LineProcess(
      "sh",
      [
        "-c",
        "\(command) --package-path '\(place)/\(package)' --cache-path '\(place)/cache' "
          + "--config-path '\(place)/config' --security-path '\(place)/security' 2>&1; echo over",
      ], environment: CompilerRun.environment(leavingFilesIn: place))
    var text = ""
    while !text.hasSuffix("over\n") { text += try process.text(until: CompilerRun.deadline) }
    return text
  }
}
