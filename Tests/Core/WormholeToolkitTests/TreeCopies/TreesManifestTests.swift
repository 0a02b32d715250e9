import Foundation
import Testing
import WormholeTestSupport

@testable import WormholeSystem
@testable import WormholeToolkit

@Suite("The manifest of an item", .blocking)
struct TreesManifestTests {
  @Test("has every entry as find sees it")
  func random() throws {
    let seed = TestSeed.next("TREES_MANIFEST_SEED")
    let scene = try TreesScene()
    var tree = RandomTree(seed.generator)
    try tree.make(scene.item, at: scene.at, entries: 300)
    let found = try scene.shell(
      "find item -printf '%P|%y|%m|%U|%G|%n|%i|%s|%T@|%C@\\0'"
    ).split(separator: "\0")
    let manifest = try TreeManifest(of: scene.item, at: scene.at)
    var lines: [String] = []
    var waiting = [(path: TreePath(), index: 0)]
    while let (path, index) = waiting.popLast() {
      lines.append(line(path, manifest.entries[index]))
      let children = manifest.children(of: index)
      waiting += children.map { (path.appending(manifest.name(of: $0)), $0) }
    }
    #expect(lines.count == manifest.entries.count && lines.count > 100)
    #expect(Set(lines) == Set(found.map(String.init)), "\(seed)")
  }

  private func line(_ path: TreePath, _ entry: TreeManifest.Entry) -> String {
    let kinds: [FileStatus.Kind: String] = [
      .regular: "f", .directory: "d", .symbolicLink: "l", .fifo: "p",
    ]
    let fields: [Any] = [
      path.text, kinds[entry.kind] ?? "?", String(entry.permissions, radix: 8), entry.owner,
      entry.group, entry.links, entry.inode, entry.size, time(entry.modified), time(entry.changed),
    ]
    return fields.map { "\($0)" }.joined(separator: "|")
  }

  private func time(_ nanoseconds: Int64) -> String {
    String(format: "%ld.%09ld0", nanoseconds / 1_000_000_000, nanoseconds % 1_000_000_000)
  }

  /// A command, and whether it is a change.
  private static let changes: [(String, Bool)] = [
    ("true", false), ("cat item/a/file item/other; ls -R item", false),
    ("ln item/a/file name; ln item/a/file item.name", false),
    ("mkdir item/new; rmdir item/new; touch item/new; rm item/new", false),
    ("touch outside", false), ("touch item/.ours; touch item/a/.ours", false),
    ("echo >>item/a/file", true), ("touch item/a/file", true),
    ("printf HELLO >item/a/file; touch -d @1000000000 item/a/file", true),
    ("cp -p item/a/file new; mv new item/a/file", true), ("chmod 640 item/a/file", true),
    ("chmod 711 item/a", true), ("chmod 711 item", true), ("rm item/a/file", true),
    ("touch item/a/new", true), ("mkdir item/a/new", true), ("ln -sfn elsewhere item/link", true),
    ("mv item/a item/b", true), ("mv item/a/file item/a/gile", true), ("rm -r item", true),
    ("rm -r item; touch item", true), ("rm item/other; mkdir item/other", true),
    ("mv item/other x; mv item/a/file item/other; mv x item/a/file", true),
  ]

  @Test("distinguishes each change from other commands", arguments: changes)
  func changed(_ change: String, _ isChange: Bool) throws {
    let scene = try TreesScene()
    try scene.shell(
      """
      mkdir -p item/a; printf hello >item/a/file; printf other >item/other; ln -s nowhere item/link
      touch -d @1000000000 item/a/file item/other
      """)
    let take = {
      try TreeManifest(of: scene.item, at: scene.at, leavingOut: { $0.text == ".ours" })
    }
    let before = try take()
    try scene.shell(change)
    let after = try take()
    #expect(after.isUnchanged(since: before) == !isChange)
    #expect(before.isUnchanged(since: after) == !isChange)
  }

  @Test("names what was changed, added and removed, a directory without what is in it")
  func namedChanges() throws {
    let scene = try TreesScene()
    try scene.shell("mkdir -p item/a/b item/c item/k; touch item/a/b/f item/c/f item/e item/k/f")
    let before = try TreeManifest(of: scene.item, at: scene.at)
    try scene.shell(
      """
      echo 1 >>item/a/b/f; rm -r item/c; mkdir -p item/d/x; rm item/e; mkdir item/e; touch item/e/f
      chmod 711 item/k; touch item/k/g
      """)
    let after = try TreeManifest(of: scene.item, at: scene.at)
    let changes = after.changes(since: before, atMost: 100).map(\.text)
    #expect(changes == ["a/b/f", "c", "d", "e", "k", "k/g"])
    #expect(after.changes(since: before, atMost: 2).count == 2)
    let nothing = try TreeManifest(of: FileName("nothing"), at: scene.at)
    #expect(nothing.changes(since: before, atMost: 9) == [TreePath()])
    #expect(before.changes(since: before, atMost: 9) == [])
  }

  @Test("of a single file has its status")
  func file() throws {
    let scene = try TreesScene()
    let nothing = try TreeManifest(of: scene.item, at: scene.at)
    #expect(nothing.root == nil && nothing.isUnchanged(since: nothing))
    try scene.shell("printf hello >item")
    let status = try fileStatus(scene.item, at: scene.at)
    let before = try TreeManifest(of: scene.item, at: scene.at)
    #expect(!before.isUnchanged(since: nothing) && !nothing.isUnchanged(since: before))
    try scene.shell("ln item other")
    #expect(try fileStatus(scene.item, at: scene.at).isUnchanged(since: status))
    #expect(try TreeManifest(of: scene.item, at: scene.at).isUnchanged(since: before))
    try scene.shell("printf HELLO >item")
    #expect(try !fileStatus(scene.item, at: scene.at).isUnchanged(since: status))
    #expect(try !TreeManifest(of: scene.item, at: scene.at).isUnchanged(since: before))
  }

  @Test("takes about 100 bytes per entry")
  func memory() {
    // The entry, its place in the order, and a name of usual length.
    #expect(MemoryLayout<TreeManifest.Entry>.stride + 4 + 16 <= 100)
  }

  @Test("treats entries that vanish while it is made as absent")
  func vanishing() throws {
    #if DEBUG
      let scene = try TreesScene()
      for call in 0..<200 {
        try scene.shell("rm -rf item; mkdir -p item/a/b item/c; touch item/a/b/d item/c/e item/f")
        let isOver = Faults.Plan { _, index in
          guard index == call else { return .proceed }
          Faults.$plan.withValue(nil) { removeAll(scene) }
          return .proceed
        }
        let manifest = try Faults.$plan.withValue(isOver) {
          try TreeManifest(of: scene.item, at: scene.at)
        }
        if isOver.calls <= call { return #expect(manifest.entries.count == 7) }
      }
      Issue.record("the manifest of seven entries takes hundreds of calls")
    #endif
  }

  @Sendable private func removeAll(_ scene: TreesScene) {
    do { try scene.shell("rm -r item") } catch { Issue.record(error) }
  }
}
