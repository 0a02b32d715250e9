import Dispatch
import FoundationEssentials
import Synchronization
import Testing
import Wormhole
import WormholeSystem
import WormholeTestSupport

@testable import WormholeFiles

/// Accesses of one purpose never wait for each other. The last one to publish used to win, and the
/// other's change was lost without an error.
@Suite("Accesses of one purpose", .blocking)
struct CompanionsTests {
  let scene: RaceScene

  init() throws {
    scene = try RaceScene()
    try scene.put("old", "a")
  }

  @Test("of two coordinators of one presenter: the second to publish throws, and its copy is kept")
  func presenter() throws {
    let presenter = SavingPresenter(scene.path("a"))
    try expectConflict(
      FileCoordinator(filePresenter: presenter), FileCoordinator(filePresenter: presenter))
  }

  @Test("of two accesses of one coordinator at once the second to publish throws")
  func coordinator() throws {
    let coordinator = FileCoordinator()
    try expectConflict(coordinator, coordinator)
  }

  private func expectConflict(_ first: FileCoordinator, _ second: FileCoordinator) throws {
    let error = #expect(throws: WormholeError.self) {
      try first.coordinate(writingItemAt: scene.url("a")) { copy in
        try second.coordinate(writingItemAt: scene.url("a")) {
          try ItemText.write("second", to: $0.path)
        }
        try ItemText.write("first", to: copy.path)
      }
    }
    #expect(error?.code == .conflict)
    #expect(try scene.text("a") == "second")
    let kept = URL(filePath: try #require(error?.keptCopy))
    #expect(error?.description.contains(kept.path) == true)
    #expect(try scene.text(kept.lastPathComponent) == "first")
    try scene.expectOnly(["a", kept.lastPathComponent])
  }

  @Test("of several items: what the accessor has changed is kept, also of those that come later")
  func severalItems() throws {
    try scene.put("old", "b")
    let coordinator = FileCoordinator()
    coordinator.purposeIdentifier = "several"
    let error = #expect(throws: WormholeError.self) {
      try coordinator.coordinate(
        writingItemAt: scene.url("a"), writingItemAt: scene.url("b")
      ) { first, second in
        try ItemText.write("late", to: first.path)
        try ItemText.write("late", to: second.path)
        // A program that does not coordinate.
        try scene.put("others", "b")
      }
    }
    #expect(error?.code == .conflict)
    #expect(try scene.text("b") == "others")
    try scene.takeKept("b", "late")
    try scene.takeKept("a", "late")
    try scene.expectOnly(["a", "b"])
  }

  @Test("one that changes nothing, and one that replaces the item unseen, do not conflict")
  func noConflict() throws {
    let coordinator = FileCoordinator()
    try coordinator.coordinate(writingItemAt: scene.url("a")) { _ in
      try coordinator.coordinate(writingItemAt: scene.url("a")) {
        try ItemText.write("second", to: $0.path)
      }
    }
    #expect(try scene.text("a") == "second")
    try coordinator.coordinate(writingItemAt: scene.url("a"), options: .forReplacing) { place in
      try coordinator.coordinate(writingItemAt: scene.url("a")) {
        try ItemText.write("third", to: $0.path)
      }
      try ItemText.write("replaced", to: place.path)
    }
    #expect(try scene.text("a") == "replaced")
    try scene.expectOnly(["a"])
  }

  @Test("a directory that another access of the purpose published meanwhile is a conflict")
  func directory() throws {
    let coordinator = FileCoordinator()
    try scene.makeFolder("d")
    try scene.put("old", "d/one")
    let error = #expect(throws: WormholeError.self) {
      try coordinator.coordinate(writingItemAt: scene.url("d")) { copy in
        try coordinator.coordinate(writingItemAt: scene.url("d")) {
          try ItemText.write("second", to: $0.path + "/one")
        }
        try ItemText.write("first", to: copy.path + "/one")
      }
    }
    #expect(error?.code == .conflict)
    #expect(try scene.text("d/one") == "second")
  }

  enum Removal: CaseIterable { case given, asked, moved }

  @Test(
    "a file is deleted, however its accessor removes it, and also one with two names or a link",
    arguments: Removal.allCases)
  func deletion(removal: Removal) throws {
    try scene.put("old", "two")
    try FileManager.default.linkItem(at: scene.url("two"), to: scene.url("other"))
    try FileManager.default.createSymbolicLink(
      atPath: scene.path("link"), withDestinationPath: "two")
    let names = ["a", "link", "two"]
    let presenter = SavingPresenter(scene.path("a"))
    for name in names {
      try FileCoordinator(filePresenter: presenter)
        .coordinate(writingItemAt: scene.url(name), options: .forDeleting) { place in
          switch removal {
          case .given: try FileManager.default.removeItem(at: place)
          case .asked: try FileManager.default.removeItem(at: scene.url(name))
          case .moved: try FileManager.default.moveItem(at: place, to: scene.url("trash-" + name))
          }
        }
    }
    KeptSites.shared.removeAll()
    try scene.expectOnly(["other"] + (removal == .moved ? names.map { "trash-" + $0 } : []))
  }

  @Test("a file that another access of the purpose changed meanwhile is not deleted")
  func changedDeletion() throws {
    let coordinator = FileCoordinator()
    let error = #expect(throws: WormholeError.self) {
      try coordinator.coordinate(writingItemAt: scene.url("a"), options: .forDeleting) { place in
        try coordinator.coordinate(writingItemAt: scene.url("a")) {
          try ItemText.write("second", to: $0.path)
        }
        try FileManager.default.removeItem(at: place)
      }
    }
    #expect(error?.code == .conflict)
    #expect(try scene.text("a") == "second")
  }

  /// It used to ask again and again for the lease that the process had lost.
  @Test("inside one that was taken over gets the item")
  func insideOvertaken() throws {
    let coordinator = FileCoordinator()
    let error = #expect(throws: WormholeError.self) {
      try coordinator.coordinate(writingItemAt: scene.url("a"), term: .zero) { copy in
        try FileCoordinator().coordinate(writingItemAt: scene.url("a"), until: soon) {
          try ItemText.write("others", to: $0.path)
        }
        try coordinator.coordinate(writingItemAt: scene.url("a"), until: soon) {
          #expect(try ItemText.read($0.path) == "others")
          try ItemText.write("inner", to: $0.path)
        }
      }
    }
    #expect(error?.code == .overtaken, "\(error as Any)")
    #expect(try scene.text("a") == "inner")
    KeptSites.shared.removeAll()
    try scene.expectOnly(["a"])
  }

  #if DEBUG
    /// It used to wait for its own process.
    @Test("inside one, and put aside by a process that was then killed, does not wait for itself")
    func putAside() throws {
      for number in 0..<200 {
        let coordinator = FileCoordinator()
        let hasActed = Mutex(false)
        try coordinator.coordinate(writingItemAt: scene.url("a")) { _ in
          let outer = try scene.entries("a")
          let taking = Faults.Plan.acting(before: number) {
            hasActed.withLock { $0 = true }
            let place = ItemSite.path(
              of: try ItemPath.find(scene.path("a"), followingLink: false).place)
            for entry in try scene.entries("a") where !outer.contains(entry) {
              let taken = place + "/" + ItemHome.trashPrefix + Nonce.next()
              try rename(
                place + "/held/" + entry, at: Directory.current, to: taken, at: Directory.current)
            }
          }
          do {
            try Faults.$plan.withValue(taking) {
              try coordinator.coordinate(writingItemAt: scene.url("a"), until: soon) {
                try ItemText.write("\(number)", to: $0.path)
              }
            }
            #expect(try scene.text("a") == "\(number)")
          } catch let error as WormholeError {
            #expect(error.code == .overtaken, "before call \(number): \(error)")
          }
        }
        guard hasActed.withLock(\.self) else { return }
      }
      Issue.record("it never ends")
    }
  #endif

  @Test("of two coordinators with one purpose: the second one is refused")
  func coordinators() throws {
    let coordinators = (0..<2).map { _ in FileCoordinator() }
    for coordinator in coordinators { coordinator.purposeIdentifier = "p" }
    let error = #expect(throws: WormholeError.self) {
      try coordinators[1].coordinate(writingItemAt: scene.url("a"), until: .now) { copy in
        try coordinators[0].coordinate(writingItemAt: scene.url("a"), until: .now) {
          try ItemText.write("first", to: $0.path)
        }
        try ItemText.write("second", to: copy.path)
      }
    }
    #expect(error?.code == .conflict)
    #expect(try scene.text("a") == "first")
  }

  // both threads, 100 times: read the number, add one, publish
  @Test("each of 200 increments by two coordinators of one presenter is counted or refused")
  func increments() throws {
    try scene.put("0", "a")
    let presenter = SavingPresenter(scene.path("a"))
    let (counted, refused) = (Counter(), Counter())
    let (url, path) = (scene.url("a"), scene.path("a"))
    DispatchQueue.concurrentPerform(iterations: 2) { _ in
      let coordinator = FileCoordinator(filePresenter: presenter)
      for _ in 0..<100 {
        do {
          try coordinator.coordinate(writingItemAt: url) { copy in
            let number = Int(try ItemText.read(copy.path) ?? "") ?? 0
            try ItemText.write("\(number + 1)", to: copy.path)
          }
          _ = counted.next()
        } catch let error as WormholeError where error.code == .conflict {
          _ = refused.next()
        } catch {
          Issue.record("\(error)")
        }
      }
    }
    #expect(counted.value + refused.value == 200)
    #expect(try ItemText.read(path) == "\(counted.value)")
    KeptSites.shared.removeAll()
    #expect(try scene.names().count == 1 + refused.value)
  }
}
