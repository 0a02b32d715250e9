import AppGroup
import Foundation
import PropertyLists
import Terminals

@testable import CinemaTime

extension Stage {
  /// Shows nothing.
  static var silent: Stage { Stage(hasColour: false) { _ in } }
}

extension StoryCast {
  private var value: Value {
    get throws { try SharedContainer(url: directory).value("purchased") }
  }

  /// The QR codes in the watch's documents.
  func codes() throws -> [String] {
    let documents = directory.appendingPathComponent("cinematime/watch")
    return try FileManager.default.contentsOfDirectory(atPath: documents.path).sorted()
  }

  /// Another program changes what is bought.
  func put(_ ids: [Int]) throws {
    try value.replace(with: .array(ids.map { PropertyListValue($0) }))
  }

  func purchased() throws -> [Int] {
    try value.snapshot().propertyList()?.arrayValue?.compactMap(\.intValue) ?? []
  }
}
