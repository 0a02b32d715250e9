import Testing
import Wormhole
import WormholeTestSupport

@testable import WormholeFiles
@testable import WormholeSystem

@Suite("A presenter of a directory, when others do not coordinate", .blocking)
struct PresentersDirectoryWatchingTests {
  let scene: PresenterScene

  init() throws {
    scene = try PresenterScene()
    try scene.shell("mkdir -p d/e/f; echo 1 > d/one; echo 2 > d/e/two; echo 3 > d/e/f/three")
  }

  @Test(
    "distinguishes new, changed and moved items, at any depth",
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
      // A change after all of these, which is reported after them.
      try scene.shell("echo > d/last")
      try scene.wait(presenter, for: "appeared:last")
      // A change of a freshly written file may be reported twice, and the contents of a removed
      // directory need not be reported.
      let mayBeReported =
        command.hasPrefix("rm -r")
        ? ["changed:two", "changed:f", "changed:three"]
        : lines.map { $0.replacing("appeared:", with: "changed:") }
      let rest = presenter.heard.filter { !lines.contains($0) && !$0.hasSuffix(":last") }
      #expect(Set(rest).isSubset(of: mayBeReported))
    }
  }

  // The kernel reports the end of a directory itself only when no process has it open any more.
  @Test(
    "gets the removal of the directory, or of one in it, while a process has it open",
    arguments: ["d", "d/e"])
  func removalOfOpen(_ name: String) throws {
    let line = name == "d" ? "changed" : "changed:e"
    try scene.shell("rm -r d/*; [ \(name) = d ] || mkdir d/e")
    try scene.presenting("d") { presenter in
      let descriptor = try FileDescriptor.open(scene.path(name), [.readOnly, .directory])
      try scene.shell("rmdir \(name)")
      try scene.wait(presenter, for: line)
      presenter.forget()
      try scene.shell("mkdir \(name)")
      try scene.wait(presenter, for: name == "d" ? line : "appeared:e")
      try scene.shell("echo > \(name)/new")
      try scene.wait(presenter, for: "appeared:new")
      withExtendedLifetime(descriptor) {}
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

  @Test("finds what differs when it, or a directory in it, is replaced by another")
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

  @Test("gets each of 1,000 new subitems, and each of 1,000 changes")
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

  @Test("ignores the names that coordination creates for itself")
  func ownNames() throws {
    try scene.presenting("d") { presenter in
      try scene.shell(
        "mkdir d/.coordination-x; echo > d/.coordination-x/y; rm -r d/.coordination-x")
      try scene.shell("echo > d/last")
      try scene.wait(presenter, for: "appeared:last")
      #expect(presenter.heard.allSatisfy { $0.hasSuffix(":last") })
    }
  }

  @Test("of a container ignores the directories in which presenters meet")
  func container() throws {
    // This process has just written it. A child that another test starts has a copy of the descriptor until
    // it runs its program, so the end of the write may be reported late; as a change, if it is recent.
    let written = scene.directory.path + "/container.plist"
    try eventually("the container's file is not new any more") {
      try !EntryStatus(fileStatus(written)).isFresh
    }
    let presenter = RecordingPresenter(scene.directory.path)
    try RegisteredPresenter.add(presenter)
    defer { RegisteredPresenter.remove(presenter) }
    let other = try Participant(scene.directory.path)
    _ = try other.ask("present \(scene.path("d/one"))")
    try scene.ask(.content, "d/one").finish(published: [:])
    try other.end()
    try scene.shell("mkdir -p ../values/own; echo > d/last")
    try scene.wait(presenter, for: "appeared:last")
    try scene.wait(presenter, for: "appeared:own")
    let names = Set(presenter.heard.compactMap { $0.split(separator: ":").last })
    #expect(names.isSubset(of: ["last", "own", "values"]))
  }

  @Test("examines only a changed name, however many there are")
  func onlyNames() throws {
    try scene.shell("mkdir d/many; cd d/many; seq 3000 | xargs touch")
    let path = scene.path("d")
    var tree = try tree()
    let place = tree.place(of: ["many", "17"].map { FileName(bytes: Array($0.utf8)) })
    try scene.shell("echo changed > d/many/17; echo changed > d/many/18")
    var news = WatchNews()
    news.add(FileName(bytes: Array("17".utf8)))
    let notices = tree.look([try #require(place).node: news], at: ItemPath(path), isLast: true)
    #expect(notices == [.subitemChanged(ItemPath(path + "/many/17"))])
  }

  private func tree() throws -> ItemTree {
    let root = SharedDescriptor(try FileDescriptor.open(scene.path("d"), [.pathOnly, .directory]))
    return ItemTree(root, try root.descriptor.status()) { _, _ in }
  }

  @Test("finds all changes after events were lost")
  func lostEvents() throws {
    let path = ItemPath(scene.path("d"))
    func place(_ name: String) -> ItemPath { ItemPath(path.text + "/" + name) }
    var tree = try tree()
    try scene.shell("echo xyz > d/one; mv d/e/two d/e/f; echo > d/e/new; rm d/e/f/three")
    let everything = tree.nodes.mapValues { _ in WatchNews.everything }
    let notices = Set(tree.look(everything, at: path, isLast: true))
    let expected: Set<PresenterNotice> = [
      .subitemChanged(place("one")), .subitemMoved(place("e/two"), place("e/f/two")),
      .subitemAppeared(place("e/new")), .subitemChanged(place("e/f/three")),
    ]
    #expect(notices == expected)
    #expect(tree.look(everything, at: path, isLast: true).isEmpty)
  }

  @Test("recognizes a move whose new place is reported first")
  func newPlaceFirst() throws {
    let path = ItemPath(scene.path("d"))
    var tree = try tree()
    try scene.shell("mv d/one d/e/uno")
    let (old, new) = (ItemPath(path.text + "/one"), ItemPath(path.text + "/e/uno"))
    let place = try #require(tree.place(of: path.components(to: new) ?? []))
    var news = WatchNews()
    news.add(place.name)
    #expect(tree.look([place.node: news], at: path, isLast: false) == [.subitemMoved(old, new)])
  }

  /// Used to be reported as a change and a new directory if another event came in between.
  @Test("recognizes a move whose two places are reported apart, whatever comes between them")
  func oldPlaceFirst() throws {
    let path = ItemPath(scene.path("d"))
    var tree = try tree()
    func news(_ name: String) throws -> [ItemTree.NodeID: WatchNews] {
      let components = path.components(to: ItemPath(path.text + "/" + name))
      let place = try #require(tree.place(of: components ?? []))
      var news = WatchNews()
      news.add(place.name)
      return [place.node: news]
    }
    let (between, old, new) = (try news("e/f/three"), try news("e/two"), try news("two"))
    try scene.shell("mv d/e/two d")
    #expect(tree.look(old, at: path, isLast: false) == [])
    #expect(tree.look(between, at: path, isLast: false) == [])
    #expect(
      tree.look(new, at: path, isLater: true, isLast: false)
        == [.subitemMoved(ItemPath(path.text + "/e/two"), ItemPath(path.text + "/two"))])
  }

  @Test("examines a directory again after its watch has ended, because it may be another one")
  func endedWatch() throws {
    let path = ItemPath(scene.path("d"))
    var tree = try tree()
    try scene.shell("echo > d/e/unheard")
    let new = ItemPath(path.text + "/e/unheard")
    let place = try #require(tree.place(of: path.components(to: new) ?? []))
    var news = WatchNews()
    #expect(tree.look([place.node: news], at: path, isLast: true).isEmpty)
    news.note(.ignored, of: nil)
    #expect(tree.look([place.node: news], at: path, isLast: true) == [.subitemAppeared(new)])
    #expect(tree.nodes[place.node]?.watch != nil)
  }

  @Test("does not take a new file with the number of a removed one for the removed one")
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
