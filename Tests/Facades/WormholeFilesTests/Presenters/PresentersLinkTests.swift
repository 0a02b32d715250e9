import FoundationEssentials
import Testing
import WormholeSystem
import WormholeTestSupport

@testable import WormholeFiles

@Suite("A presenter of an item behind links", .blocking)
struct PresentersLinkTests {
  private let scene: PresenterScene

  init() throws {
    scene = try PresenterScene()
    try scene.shell("echo 1 > one; echo 2 > two; ln -s one link")
  }

  private func link(_ target: String, at place: String) throws {
    try makeSymbolicLink(FileName(place), at: Directory.current, target: FileName(target))
  }

  /// Points a link elsewhere in one step.
  private func point(_ name: String, to target: String) throws {
    let place = scene.path(name)
    try link(target, at: place + ".new")
    try rename(place + ".new", at: Directory.current, to: place, at: Directory.current)
  }

  private func heard(
    _ count: Int, by presenter: RecordingPresenter, after body: () throws -> Void
  ) throws {
    let before = presenter.heard.count
    try body()
    try eventually("\(count) reports") { presenter.heard.count >= before + count }
  }

  @Test("gets a change when a link is pointed elsewhere, and then the changes there only")
  func pointedElsewhere() throws {
    try scene.presenting("link") { presenter in
      try heard(1, by: presenter) { try point("link", to: "two") }
      try scene.shell("echo x >> one")
      try heard(1, by: presenter) { try scene.shell("rm two; mkdir two") }
      #expect(Set(presenter.heard) == ["changed"])
    }
  }

  @Test("gets a change when a link is removed, and one when it is there again")
  func removedLink() throws {
    try scene.presenting("link") { presenter in
      try heard(1, by: presenter) { try removeFile(scene.path("link")) }
      try heard(1, by: presenter) { try link("two", at: scene.path("link")) }
      #expect(presenter.heard == ["changed", "changed"])
      try heard(1, by: presenter) { try removeFile(scene.path("two")) }
    }
  }

  @Test("follows a moved item, until its link leads to an item again")
  func moved() throws {
    try scene.presenting("link") { presenter in
      try heard(1, by: presenter) { try scene.shell("mv one three") }
      #expect(presenter.heard == ["moved:three"])
      try heard(1, by: presenter) { try point("link", to: "two") }
      #expect(presenter.heard == ["moved:three", "changed"])
      try heard(1, by: presenter) { try scene.shell("rm two") }
    }
  }

  @Test("gets the differences of two directories")
  func directories() throws {
    try scene.shell("mkdir 1 2; echo a > 1/a; echo b > 2/b; ln -s 1 current")
    try scene.presenting("current") { presenter in
      try heard(2, by: presenter) { try point("current", to: "2") }
      #expect(Set(presenter.heard) == ["changed:a", "appeared:b"])
      try heard(1, by: presenter) { try scene.shell("echo c > 2/c") }
    }
  }

  // As Kubernetes does it.
  @Test("gets one change for each of 100 new versions of a mounted configuration")
  func configuration() throws {
    try scene.shell(
      "mkdir map map/..0; echo 0 > map/..0/key; cd map; ln -s ..0 ..data; ln -s ..data/key key")
    try scene.presenting("map/key") { presenter in
      for version in 1...100 {
        let place = scene.path("map/..\(version)")
        try makeDirectory(place)
        try FileDescriptor.open(place + "/key", [.writeOnly, .create]).writeAll(
          Array("\(version)".utf8))
        try heard(1, by: presenter) {
          try point("map/..data", to: "..\(version)")
          try removeFile(scene.path("map/..\(version - 1)/key"))
          try removeDirectory(scene.path("map/..\(version - 1)"))
        }
      }
      // An event after all earlier ones.
      try heard(1, by: presenter) { try removeFile(scene.path("map/..100/key")) }
      #expect(presenter.heard == Array(repeating: "changed", count: 101))
    }
  }

  @Test("is asked by accesses to the new item")
  func registered() throws {
    try scene.presenting("link", .reacquires) { presenter in
      try heard(1, by: presenter) { try point("link", to: "two") }
      try eventually("it is registered there") {
        RegisteredPresenter.registered(presenter)?.path?.text == scene.path("two")
      }
      let place = scene.path("two")
      try eventually("a writer asks it") {
        try FileCoordinator().coordinate(writingItemAt: URL(filePath: place)) { _ in }
        return presenter.heard.contains("reacquired")
      }
    }
  }
}
