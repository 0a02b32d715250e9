import Dispatch
import FoundationEssentials
import Synchronization
import Testing
import WormholeSystem
import WormholeTestSupport
import WormholeToolkit

@testable import WormholeFiles

@Suite("Presenters and coordinators together", .blocking)
struct PresentersCoordinatorTests {
  let scene: PresenterScene

  init() throws {
    scene = try PresenterScene()
    try scene.shell("mkdir d; echo 1 > d/file")
  }

  private func url(_ name: String) -> URL { URL(filePath: scene.path(name)) }

  private func write(_ text: String, to url: URL) throws {
    let file = try FileDescriptor.open(url.path, [.writeOnly, .create, .truncate])
    try file.writeAll(Array(text.utf8))
  }

  @Test("others are asked and notified about a write, the coordinator's own presenter is not")
  func writing() throws {
    try scene.presenting("d/file", .reacquires) { other in
      try scene.presenting("d/file") { own in
        try scene.presenting("d") { above in
          for round in 0..<5 {
            other.forget()
            above.forget()
            try FileCoordinator(filePresenter: own).coordinate(writingItemAt: url("d/file")) {
              #expect(other.heard == ["writer"])
              try write("round \(round)", to: $0)
            }
            try scene.wait(other, for: "changed")
            try scene.wait(other, for: "reacquired")
            try scene.wait(above, for: "changed:file")
          }
          try scene.shell("mv d/file d/last")
          try scene.wait(own, for: "moved:last")
          #expect(own.heard == ["moved:last"])
        }
      }
    }
  }

  @Test("preparing asks each once, and accesses of the same coordinator meanwhile ask no more")
  func preparing() throws {
    try scene.presenting("d/file", .reacquires) { other in
      let coordinator = FileCoordinator()
      let item = url("d/file")
      try coordinator.prepare(forReadingItemsAt: [item], writingItemsAt: [item]) { done in
        #expect(other.heard == ["reader", "save", "writer"])
        for _ in 0..<2 {
          try coordinator.coordinate(readingItemAt: item) { _ in }
          try coordinator.coordinate(writingItemAt: item, options: .forMoving) { _ in }
        }
        #expect(other.heard == ["reader", "save", "writer"])
        // Another coordinator has prepared nothing.
        try FileCoordinator().coordinate(readingItemAt: item, options: .withoutChanges) { _ in }
        #expect(other.heard.prefix(4) == ["reader", "save", "writer", "reader"])
        other.forget()
        done()
      }
      try scene.wait(other, for: "reacquired")
      try coordinator.coordinate(readingItemAt: item) { _ in }
      #expect(other.heard.contains("save"))
    }
  }

  // each of two presenters, in a callback
  // waits until both are in one
  // asks the other
  @Test("two that ask each other in their callbacks do not wait for each other")
  func askingEachOther() throws {
    try scene.presenting("d/file") { first in
      try scene.presenting("d/file") { second in
        let presenters = [first, second]
        let silent = Mutex<[[PresenterDescription]]>([])
        let isThere = presenters.map { _ in DispatchSemaphore(value: 0) }
        for (number, presenter) in presenters.enumerated() {
          let callbacks = try #require(RegisteredPresenter.registered(presenter)).callbacks
          callbacks.post { presenter in
            isThere[number].signal()
            #expect(isThere[1 - number].wait(timeout: .now() + .seconds(30)) == .success)
            do {
              let conversation = try scene.ask(.merging, "d/file", by: presenter)
              silent.withLock { $0.append(conversation.silent) }
            } catch {
              Issue.record(error)
            }
          }
        }
        try eventually("both have asked") { silent.withLock { $0.count } == 2 }
        #expect(silent.withLock { $0 } == [[], []])
        // Afterwards they are asked as before.
        for presenter in presenters { presenter.forget() }
        _ = try scene.ask(.reading, "d/file")
        #expect(presenters.map(\.heard) == [["reader", "save"], ["reader", "save"]])
      }
    }
  }

  @Test("one stays added if its first addition fails after a second one in another thread")
  func failingFirst() throws {
    try scene.shell("ln -s loop loop")
    let presenter = WaveringPresenter(first: url("loop/file"), url("d/file"))
    let failure = Mutex<(any Error)?>(nil)
    try startThread(name: "first addition") {
      do {
        try RegisteredPresenter.add(presenter)
      } catch {
        failure.withLock { $0 = error }
      }
    }
    try eventually("the first addition asks for the item") { presenter.questions == 1 }
    try RegisteredPresenter.add(presenter)
    defer { RegisteredPresenter.remove(presenter) }
    presenter.answer.signal()
    try eventually("the first addition fails") { failure.withLock { $0 is PresenterError } }
    #expect(
      RegisteredPresenter.registered(presenter)?.path == ItemPath(scene.path("d/file")))
  }

  @Test("a deletion is accommodated by all presenters concerned except the coordinator's own")
  func deleting() throws {
    try scene.presenting("d/file") { item in
      try scene.presenting("") { above in
        try scene.presenting("d") { own in
          try FileCoordinator(filePresenter: own)
            .coordinate(writingItemAt: url("d"), options: .forDeleting) {
              #expect(item.heard == ["writer", "deletion"])
              #expect(above.heard == ["deletion:d"])
              let remove = try ChildProcess("rm", ["-r", $0.path])
              _ = try remove.wait(until: soon)
            }
          try scene.wait(above, for: "changed:d")
          try scene.wait(item, for: "changed")
          #expect(own.heard.isEmpty)
          try scene.shell("mkdir d; echo > d/new")
          try scene.wait(own, for: "changed")
        }
      }
    }
  }

  @Test("a presenter is not notified of its own attribute changes, but of others'")
  func attributes() throws {
    try scene.presenting("d/file") { other in
      try scene.presenting("d/file") { own in
        try FileCoordinator(filePresenter: own)
          .coordinate(writingItemAt: url("d/file"), options: .contentIndependentMetadataOnly) {
            try FileDescriptor.open($0.path, .readOnly).setPermissions(0o640)
          }
        try scene.wait(other, for: "changed")
        #expect(own.heard.isEmpty)
        try FileCoordinator(filePresenter: own)
          .coordinate(writingItemAt: url("d/file"), options: .contentIndependentMetadataOnly) { _ in
            try scene.shell("echo others >> d/file")
          }
        try scene.wait(own, for: "changed")
      }
    }
  }

  @Test("a coordinated move is reported with the new place, but not to the mover's own presenter")
  func moving() throws {
    try scene.presenting("d/file") { other in
      try scene.presenting("d/file") { own in
        let coordinator = FileCoordinator(filePresenter: own)
        try coordinator.coordinate(writingItemAt: url("d/file"), options: .forMoving) {
          try rename(
            $0.path, at: Directory.current, to: scene.path("moved"), at: Directory.current)
          coordinator.item(at: $0, didMoveTo: url("moved"))
        }
        try scene.wait(other, for: "moved:moved")
        own.move(to: scene.path("moved"))
        try scene.shell("echo others > moved")
        try scene.wait(other, for: "changed")
        #expect(other.heard.filter { $0.hasPrefix("moved") } == ["moved:moved"])
        #expect(!own.heard.contains { $0.hasPrefix("moved") })
      }
    }
  }

  @Test("a move between two names that Unicode calls equivalent is a move")
  func movingToEquivalent() throws {
    let (old, new) = (url("d/e\u{301}"), url("d/\u{E9}"))
    try scene.shell("touch d/$(printf 'e\\314\\201')")
    try scene.presenting("d/e\u{301}") { presenter in
      FileCoordinator().item(at: old, didMoveTo: new)
      try scene.wait(presenter, for: "moved:\u{E9}")
    }
  }

  @Test("a move to the place of a replaced item is reported once, and before the reacquirer")
  func movingToReplaced() throws {
    try scene.presenting("d/file", .reacquires) { other in
      try scene.presenting("d") { above in
        let coordinator = FileCoordinator()
        try coordinator.coordinate(
          writingItemAt: url("d/file"), options: .forMoving,
          writingItemAt: url("new"), options: .forReplacing
        ) {
          coordinator.item(at: $0, willMoveTo: $1)
          try rename($0.path, at: Directory.current, to: $1.path, at: Directory.current)
          coordinator.item(at: $0, didMoveTo: $1)
        }
        try scene.wait(other, for: "reacquired")
        try scene.shell("echo others > new")
        try scene.wait(other, for: "changed")
        #expect(other.heard.filter { $0.hasPrefix("moved") } == ["moved:new"])
        let ends = other.heard.filter { ["moved:new", "reacquired"].contains($0) }
        #expect(ends == ["moved:new", "reacquired"])
        try scene.wait(above, for: "moved:file:new")
      }
    }
  }

  @Test("a move that cannot be published is not reported")
  func movingInVain() throws {
    struct Refused: Error {}
    try scene.presenting("d/file") { other in
      let coordinator = FileCoordinator()
      #expect(throws: Refused.self) {
        try coordinator.coordinate(writingItemAt: url("d/file"), writingItemAt: url("new")) {
          try rename($0.path, at: Directory.current, to: $1.path, at: Directory.current)
          coordinator.item(at: $0, didMoveTo: $1)
          throw Refused()
        }
      }
      try scene.shell("echo others > d/file")
      try scene.wait(other, for: "changed")
      #expect(!other.heard.contains { $0.hasPrefix("moved") })
    }
  }
}

/// A presenter whose item is at a different place when it is asked a second time; its first answer waits.
private final class WaveringPresenter: FilePresenter {
  let presentedItemQueue = DispatchQueue(label: "wavering-presenter")
  let answer = DispatchSemaphore(value: 0)
  private let places: (first: URL, later: URL)
  private let asked = Mutex(0)

  init(first: URL, _ later: URL) { places = (first, later) }

  var questions: Int { asked.withLock { $0 } }

  var presentedItemURL: URL? {
    let number = asked.withLock {
      $0 += 1
      return $0
    }
    guard number == 1 else { return places.later }
    _ = answer.wait(timeout: .now() + 20)
    return places.first
  }
}
