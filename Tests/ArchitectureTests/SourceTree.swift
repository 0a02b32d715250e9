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
      .flatMap { try readFiles(in: $0, of: "Tests") }
  }

  /// Reads the files of the targets in a folder, or only of those whose name ends in a word.
  private static func readFiles(in folder: String, of suffix: String = "") throws -> [File] {
    let manager = FileManager.default
    let targets = try manager.contentsOfDirectory(atPath: root.path + "/" + folder)
    return try targets.sorted().filter { $0.hasSuffix(suffix) }.flatMap { target in
      let sources = "\(folder)/\(target)/"
      return try manager.subpathsOfDirectory(atPath: root.path + "/" + sources).sorted()
        .filter { $0.hasSuffix(".swift") }
        .map {
          File(path: sources + $0, target: target, text: SourceText(try text(of: sources + $0)))
        }
    }
  }

  static func manifest() throws -> String { try text(of: "Package.swift") }

  /// The content of a file, by its path from the package's root.
  static func text(of path: String) throws -> String {
    try String(contentsOf: root.appending(path: path), encoding: .utf8)
  }
}
