import Foundation
import WormholeTestSupport

/// The package that these tests belong to.
enum SourceTree {
  struct File: Sendable {
    /// The path from the package's root.
    let path: String
    /// The target's folder, in one of the four groups of Sources or of Tests.
    let target: String
    let text: SourceText
  }

  static let root = URL(filePath: Checkout.path)

  /// The groups of Sources: the shared core, the APIs over it, the programs, and the tools that
  /// test and measure it.
  static let groups = ["Core", "Facades", "Programs", "Workshop"]

  /// Every Swift file below Sources, sorted by path; read once for all tests.
  static let files = Result { try groups.flatMap { try readFiles(in: "Sources/" + $0) } }

  /// Every Swift file below Tests that belongs to tests.
  static let tests = Result {
    try ["Tests", "Tests/Core", "Tests/Facades", "Tests/Programs", "Tests/Workshop"]
      .flatMap(readFiles).filter { $0.target.hasSuffix("Tests") }
  }

  private static func readFiles(in folder: String) throws -> [File] {
    let sources = root.appending(path: folder)
    var files: [File] = []
    for path in try FileManager.default.subpathsOfDirectory(atPath: sources.path).sorted()
    where path.hasSuffix(".swift") {
      files.append(
        File(
          path: folder + "/" + path, target: String(path.prefix { $0 != "/" }),
          text: SourceText(try String(contentsOf: sources.appending(path: path), encoding: .utf8))))
    }
    return files
  }

  static func manifest() throws -> String { try text(of: "Package.swift") }

  /// The content of a file, by its path from the package's root.
  static func text(of path: String) throws -> String {
    try String(contentsOf: root.appending(path: path), encoding: .utf8)
  }
}
