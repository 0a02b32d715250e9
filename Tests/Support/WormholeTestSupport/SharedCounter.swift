import FoundationEssentials
import WormholeSystem

/// Helpers for short texts in files.
package enum ItemText {
  /// - Returns: nil if there is no such file.
  package static func read(_ path: String) throws -> String? {
    do throws(Errno) {
      let file = try FileDescriptor.open(path, .readOnly)
      return String(
        decoding: try file.readToEnd(expectedBytes: 0, maximumBytes: 1 << 20), as: UTF8.self)
    } catch {
      guard error == .noSuchFile else { throw error }
      return nil
    }
  }

  /// Writes into the file itself, as a program without coordination does.
  package static func write(_ text: String, to path: String) throws {
    let file = try FileDescriptor.open(path, [.writeOnly, .create, .truncate], mode: 0o644)
    try file.writeAll(Array(text.utf8))
  }
}

/// A JSON file that records the number of changes of each of several processes, and reveals half
/// changes.
package struct SharedCounter: Codable, Sendable {
  package var total = 0
  package var each: [String: Int] = [:]
  /// One character for each change, so that the length changes as well.
  package var trail = ""

  package init() {}

  package var isWhole: Bool {
    total == each.values.reduce(0, +) && trail.utf8.count == total % Self.longest
  }

  private static let longest = 997

  /// - Throws: The decoder's error for half a file.
  package static func read(_ path: String) throws -> SharedCounter {
    try JSONDecoder().decode(SharedCounter.self, from: Data(contentsOf: URL(filePath: path)))
  }

  package static func add(to path: String, _ name: String) throws {
    var counter = try read(path)
    counter.total += 1
    counter.each[name, default: 0] += 1
    counter.trail = String(repeating: "x", count: counter.total % longest)
    try JSONEncoder().encode(counter).write(to: URL(filePath: path))
  }
}
