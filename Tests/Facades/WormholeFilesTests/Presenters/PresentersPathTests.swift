import Testing
import WormholeSystem
import WormholeTestSupport

@testable import WormholeFiles

@Suite("The path of an item", .blocking)
struct PresentersPathTests {
  @Test(
    "is in a directory or not",
    arguments: [
      ("/", "/a", true), ("/", "/", false), ("/a", "/a/b/c", true), ("/a", "/ab", false),
      ("/a", "/a", false), ("/a/b", "/a", false),
    ])
  func contains(_ directory: String, _ item: String, _ isInside: Bool) {
    #expect(ItemPath(directory).contains(ItemPath(item)) == isInside)
  }

  @Test(
    "follows a move of itself or of a parent directory",
    arguments: [
      ("/a/b", "/a", "/c", "/c/b"), ("/a/b", "/a/b", "/c", "/c"), ("/a", "/", "/c", "/c/a"),
      ("/a/b", "/a", "/", "/b"), ("/ab", "/a", "/c", nil),
    ])
  func moved(_ item: String, _ old: String, _ new: String, _ place: String?) {
    #expect(ItemPath(item).moved(from: ItemPath(old), to: ItemPath(new))?.text == place)
  }

  @Test("has its parent directories and its name")
  func parts() {
    #expect(ItemPath("/a/b/c").ancestors.map(\.text) == ["/a/b", "/a", "/"])
    #expect(ItemPath("/").ancestors.isEmpty)
    for text in ["/a/b/c", "/a", "/", "/caf\u{e9}/\u{301}x"] {
      let path = ItemPath(text)
      var seen: [String] = []
      let all = path.lineage(having: "/x") { look in
        look.withCPath { seen.append(String(cString: $0)) }
        return true
      }
      #expect(all == [path] + path.ancestors)
      #expect(seen == all.map { ($0.text == "/" ? "" : $0.text) + "/x" })
    }
    #expect(ItemPath("/").appending(ItemPath("/a/b").name).text == "/b")
    #expect(ItemPath("/a").components(to: ItemPath("/a/b/c"))?.map(\.text) == ["b", "c"])
  }

  @Test("is resolved as by the kernel, even with missing parts; a ring of links is an error")
  func canonical() throws {
    let scene = try PresenterScene()
    try scene.shell("mkdir d; ln -s d link; ln -s link/file l; ln -s ring ring; ln -s /none/x far")
    let rows = [
      ("link/x/../y/./z", "d/y/z"), ("link", "d"), ("l", "d/file"), ("d/", "d"), (".", ""),
    ]
    for (written, place) in rows {
      let path = try ItemPath.canonical(scene.path(written), followingLink: true)
      let expected = place.isEmpty ? scene.directory.path + "/items" : scene.path(place)
      #expect(path.text == expected)
    }
    #expect(try ItemPath.canonical(scene.path("far"), followingLink: true).text == "/none/x")
    #expect(
      try ItemPath.canonical(scene.path("link"), followingLink: false).text == scene.path("link"))
    #expect(throws: Errno.tooManyLinks) {
      try ItemPath.canonical(scene.path("ring"), followingLink: true)
    }
  }
}
