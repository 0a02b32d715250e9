import FoundationEssentials
import Glibc
import Synchronization
import Testing
import Wormhole
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
    KeptSites.shared.removeAll()
    return try directory.names().filter { $0.hasPrefix(".") }
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
            #expect((error as? WormholeError)?.code == .timedOut, "\(error)")
          }
        }
      }
    }
    #expect(try hidden() == [], "\(directory.listing)")
  }

  #if DEBUG
    @Test("Of forty readers that wait for a writer in place, one watches it, and all get in")
    func readers() throws {
      let scene = try RaceScene()
      try scene.put("new", "item")
      let writer = try scene.participant()
      #expect(try writer.ask("inplace \(scene.path("item"))").hasPrefix("inside "))
      let (looked, read) = (Counter(), Counter())
      let url = scene.url("item")
      for _ in 0..<40 {
        let isFirst = Atomic(true)
        let plan = Faults.Plan { call, _ in
          // It is about to find the writer.
          if call == .getdents64, isFirst.exchange(false, ordering: .relaxed) { _ = looked.next() }
          return .proceed
        }
        try startThread(name: "reader") {
          do {
            try Faults.$plan.withValue(plan) {
              try FileCoordinator().coordinate(readingItemAt: url, until: soon) {
                if try String(contentsOf: $0, encoding: .utf8) == "new" { _ = read.next() }
              }
            }
          } catch {
            Issue.record(error)
          }
        }
      }
      let sites = scene.items + "/."
      try eventually("all have looked, and one watches") {
        let open = try RaceScene.open(by: getpid())
        return looked.value == 40 && open.count { $0.hasPrefix(sites) } < 5
      }
      #expect(read.value == 0)
      #expect(try writer.ask("leave") == "done")
      try eventually("all have read") { read.value == 40 }
      try scene.expectOnly(["item"])
    }
  #endif

  @Test("The first of a long line looks at every event, the last one seldom")
  func line() throws {
    let location = try ItemPath.find(directory.path + "/item", followingLink: false).place
    let places = (0..<1_000).map { _ in
      LinePlace(at: location, isReading: false, WakeLatch())
    }
    for (number, place) in places.enumerated() {
      #expect(place.nextLook(until: soon) == nil)
      #expect(place.mustWait() == number)
    }
    #expect(places[0].nextLook(until: soon) == nil)
    // The others do not look before the first has reported its finding.
    #expect(places[0].mustWait() == 0)
    // All of them stay in the line; an optimized build would release them after their last use.
    let next = withExtendedLifetime(places) { places[999].nextLook(until: .now + .seconds(1_000)) }
    #expect(try #require(next) > .now + .seconds(10))
  }
}
