import FoundationEssentials
import Testing
import WormholeSystem
import WormholeTestSupport

@testable import WormholeFiles

/// Many accesses of one process to one item.
@Suite("A crowd at one item", .blocking)
struct CrowdTests {
  let directory: TemporaryDirectory

  init() throws {
    directory = try TemporaryDirectory()
  }

  private func hidden() throws -> [String] {
    WarmSites.shared.removeAll()
    return try FileDescriptor.open(directory.path, [.readOnly, .directory]).entries()
      .map(\.name.text).filter { $0.hasPrefix(".") }
  }

  @Test("Two hundred tasks change a file at once, and none waits in vain")
  func tasks() async throws {
    let url = URL(filePath: directory.path + "/counter")
    try Data("0".utf8).write(to: url)
    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<200 {
        group.addTask {
          try await FileCoordinator().coordinate(
            writingItemAt: url, until: .now + .seconds(60)
          ) { copy in
            let value = Int(try String(contentsOf: copy, encoding: .utf8)) ?? -1_000
            try Data("\(value + 1)".utf8).write(to: copy)
          }
        }
      }
      try await group.waitForAll()
    }
    #expect(try String(contentsOf: url, encoding: .utf8) == "200")
    #expect(try hidden() == [], "\(directory.listing)")
  }

  @Test("Accesses that stop waiting, one after the other, leave nothing beside the item")
  func hurried() async throws {
    let url = URL(filePath: directory.path + "/contended")
    await withTaskGroup(of: Void.self) { group in
      for number in 0..<40 {
        group.addTask {
          do {
            try await FileCoordinator().coordinate(
              writingItemAt: url, until: .now + .milliseconds(number)
            ) { try Data("\(number)".utf8).write(to: $0) }
          } catch {
            #expect((error as? FileCoordinationError)?.code == .timedOut, "\(error)")
          }
        }
      }
    }
    #expect(try hidden() == [], "\(directory.listing)")
  }
}
