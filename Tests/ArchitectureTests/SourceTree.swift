import Foundation

/// The package that these tests are part of.
enum SourceTree {
  struct File: Sendable {
    /// From the package's root.
    let path: String
    /// The folder of Sources, or Tests, in which it is.
    let target: String
    let text: SourceText
  }

  static let root = URL(filePath: #filePath)
    .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

  /// Every Swift file below Sources, in the order of their paths; read once for all tests.
  static let files = Result { try readFiles(in: "Sources") }

  /// Every Swift file below Tests that belongs to tests.
  static let tests = Result {
    try readFiles(in: "Tests").filter { $0.target.hasSuffix("Tests") }
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

  static func manifest() throws -> String {
    try String(contentsOf: root.appending(path: "Package.swift"), encoding: .utf8)
  }
}
