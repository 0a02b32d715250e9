import Foundation

enum Files {
  static func write(_ content: String, to path: String) throws {
    try Data(content.utf8).write(to: URL(filePath: path))
  }

  static func read(_ path: String) throws -> String {
    try String(contentsOfFile: path, encoding: .utf8)
  }

  static func exists(_ path: String) -> Bool { FileManager.default.fileExists(atPath: path) }
}
