import AppGroup
import SystemCalls
import TestSupport
import Testing

@testable import FileCoordination

@Suite("A presenter of a directory, when others do not coordinate")
struct PresentersDirectoryWatchingTests {
  let scene: PresenterScene

  init() throws {
    scene = try PresenterScene()
    try scene.shell("mkdir -p d/e/f; echo 1 > d/one; echo 2 > d/e/two; echo 3 > d/e/f/three")
  }

  @Test(
    "tells what appeared, changed and moved apart, at any depth",
    arguments: [
      ("echo x > d/new", ["appeared:new"]),
      ("echo x > d/e/f/new", ["appeared:new"]),
      ("mkdir d/g; echo 1 > d/g/h", ["appeared:g", "appeared:h"]),
      ("echo xyz > d/one", ["changed:one"]),
      ("chmod 600 d/e/f/three; chmod 644 d/e/f/three; touch -d @1 d/e/f/three", ["changed:three"]),
      ("chmod 700 d/e; chmod 500 d/e; chmod 711 d/e", ["changed:e"]),
      ("rm d/one", ["changed:one"]),
      ("mv d/one d/uno", ["moved:one:uno"]),
      ("mv d/one d/e/f/uno", ["moved:one:uno"]),
      ("mv d/e d/eee", ["moved:e:eee"]),
      ("mv d/one .; mv d/e/two .", ["changed:one", "changed:two"]),
      ("mkdir o; echo > o/p; mv o d/o", ["appeared:o", "appeared:p"]),
      ("mv d/e elsewhere; echo > elsewhere/x", ["changed:e"]),
      ("rm -r d/e", ["changed:e"]),
      ("chmod 700 d; chmod 755 d; chmod 711 d", ["changed"]),
    ])
  func kinds(_ command: String, _ lines: [String]) throws {
    try scene.presenting("d") { presenter in
      try scene.shell(command)
      for line in lines { try scene.wait(presenter, for: line) }
      // Something that comes after all that, and is told after it.
      try scene.shell("echo > d/last")
      try scene.wait(presenter, for: "appeared:last")
      // A change of what has just been written may be told twice, and what was in a directory that
      // is gone need not be told.
      let mayBeTold =
        command.hasPrefix("rm -r")
        ? ["changed:two", "changed:f", "changed:three"]
        : lines.map { $0.replacing("appeared:", with: "changed:") }
      let rest = presenter.heard.filter { !lines.contains($0) && !$0.hasSuffix(":last") }
      #expect(Set(rest).isSubset(of: mayBeTold))
    }
  }

  @Test("follows a directory inside that was moved")
  func movedInside() throws {
    try scene.presenting("d") { presenter in
      try scene.shell("mv d/e/f d/g")
      try scene.wait(presenter, for: "moved:f:g")
      try scene.shell("echo changed > d/g/three; echo > d/g/four")
      try scene.wait(presenter, for: "changed:three")
      try scene.wait(presenter, for: "appeared:four")
      try scene.shell("rm -r d/e; mkdir d/e; echo > d/e/five")
      try scene.wait(presenter, for: "appeared:five")
    }
  }

  @Test("finds what differs when it, or a directory in it, is exchanged for another")
  func exchange() throws {
    try scene.shell("cp -a d copy; rm copy/one; echo other > copy/e/two; echo > copy/e/f/four")
    try scene.presenting("d") { presenter in
      try exchange("d", "copy")
      for line in ["changed:one", "changed:two", "appeared:four"] {
        try scene.wait(presenter, for: line)
      }
      try scene.shell("echo > d/e/f/after")
      try scene.wait(presenter, for: "appeared:after")
      presenter.forget()
      try exchange("d/e", "copy/e")
      try scene.wait(presenter, for: "changed:e")
      try scene.wait(presenter, for: "changed:four")
      try scene.shell("echo > d/e/f/then")
      try scene.wait(presenter, for: "appeared:then")
    }
  }

  private func exchange(_ one: String, _ other: String) throws {
    try rename(
      scene.path(one), at: Directory.current, to: scene.path(other), at: Directory.current,
      .exchange)
  }

  @Test("hears of each of 1,000 new subitems, and of each of 1,000 changes")
  func many() throws {
    try scene.presenting("d") { presenter in
      try scene.shell("for i in $(seq 1000); do echo > d/e/$i; done")
      try eventually("1,000 have appeared") {
        presenter.heard.filter { $0.hasPrefix("appeared:") }.count == 1_000
      }
      presenter.forget()
      try scene.shell("for i in $(seq 1000); do echo $i >> d/e/$i; done")
      try eventually("1,000 have changed") {
        Set(presenter.heard.filter { $0.hasPrefix("changed:") }).count == 1_000
      }
    }
  }

  @Test("says nothing of the names that coordination makes for itself")
  func ownNames() throws {
    try scene.presenting("d") { presenter in
      try scene.shell(
        "mkdir d/.coordination-x; echo > d/.coordination-x/y; rm -r d/.coordination-x")
      try scene.shell("echo > d/last")
      try scene.wait(presenter, for: "appeared:last")
      #expect(presenter.heard.allSatisfy { $0.hasSuffix(":last") })
    }
  }

  @Test("looks at a changed name only, however many there are")
  func onlyNames() throws {
    try scene.shell("mkdir d/many; cd d/many; seq 3000 | xargs touch")
    let path = scene.path("d")
    let root = SharedDescriptor(try FileDescriptor.open(path, [.pathOnly, .directory]))
    var tree = ItemTree(root, try root.descriptor.status()) { _, _ in }
    let place = tree.place(of: ["many", "17"].map { FileName(bytes: Array($0.utf8)) })
    try scene.shell("echo changed > d/many/17; echo changed > d/many/18")
    var news = WatchNews()
    news.add(FileName(bytes: Array("17".utf8)))
    let notices = tree.look([try #require(place).node: news], at: ItemPath(path), isLast: true)
    #expect(notices == [.subitemChanged(ItemPath(path + "/many/17"))])
  }

  @Test("a new file with the number of a removed one is not taken for it")
  func reusedNumber() throws {
    try scene.presenting("d") { presenter in
      for round in 0..<20 {
        presenter.forget()
        try scene.shell("rm -f d/a\(round - 1); echo \(round) > d/a\(round)")
        try scene.wait(presenter, for: "appeared:a\(round)")
        #expect(!presenter.heard.contains { $0.hasPrefix("moved:") })
      }
    }
  }
}
