import SystemCalls
import TestScopes
import TestSupport
import Testing

@testable import FileCoordination

/// What others did to the item, what was done to its staged copy, and what must come of it.
struct MergeRow: Sendable, CustomTestStringConvertible {
  let item: String
  let staged: String
  let plan: TreeMergePlan
  var testDescription: String { "item: \(item); staged: \(staged)" }

  init(_ item: String, _ staged: String, put: [String] = [], remove: [String] = []) {
    self.item = item
    self.staged = staged
    plan = .steps(put.map { .put(path($0)) } + remove.map { .remove(path($0)) })
  }

  init(_ item: String, _ staged: String, metadata: String) {
    self.item = item
    self.staged = staged
    plan = .steps([.setMetadata(path(metadata))])
  }

  init(_ item: String, _ staged: String, conflicts: [String]) {
    self.item = item
    self.staged = staged
    plan = .conflicts(conflicts.map(path))
  }

  static let all = [
    // One side only.
    MergeRow("true", "true"),
    MergeRow("true", "echo 1 >>f; rm g; touch n; rm -r d; mkdir e; chmod 700 d2"),
    MergeRow("echo 1 >>f", "true", put: ["f"]),
    MergeRow("rm f", "true", remove: ["f"]),
    MergeRow("touch n", "true", put: ["n"]),
    MergeRow("echo 1 >>d/f", "true", put: ["d/f"]),
    MergeRow("mkdir -p n/m; touch n/m/o", "true", put: ["n"]),
    MergeRow("rm -r d", "true", remove: ["d"]),
    MergeRow("rm -r d; touch d", "true", put: ["d"]),
    MergeRow("rm f; mkdir f; touch f/x", "true", put: ["f"]),
    MergeRow("ln -sfn elsewhere l", "true", put: ["l"]),
    MergeRow("chmod 701 d", "true", metadata: "d"),
    MergeRow("chmod 701 .", "true", metadata: ""),
    // Both sides, in different places.
    MergeRow("echo 1 >>f; rm d/f", "echo 2 >>g; touch d/n", put: ["f"], remove: ["d/f"]),
    MergeRow("touch d/1", "touch d/2", put: ["d/1"]),
    MergeRow("echo 1 >>d/f", "chmod 701 d", put: ["d/f"]),
    MergeRow("mkdir n; touch n/1", "mkdir n; touch n/2", put: ["n/1"]),
    // The same on both sides.
    MergeRow("rm f", "rm f"),
    MergeRow("rm -r d", "rm -r d"),
    MergeRow("ln -sfn elsewhere l", "ln -sfn elsewhere l"),
    MergeRow("chmod 701 d", "chmod 701 d"),
    MergeRow("mkdir n", "mkdir n"),
    MergeRow("echo 1 >>f", "ln -f ../item/f f"),
    // Different on both sides.
    MergeRow("echo 1 >>f", "echo 2 >>f", conflicts: ["f"]),
    MergeRow("rm f", "echo 2 >>f", conflicts: ["f"]),
    MergeRow("echo 1 >>f", "rm f", conflicts: ["f"]),
    MergeRow("echo 1 >n", "echo 2 >n", conflicts: ["n"]),
    MergeRow("ln -sfn one l", "ln -sfn two l", conflicts: ["l"]),
    MergeRow("chmod 701 d", "chmod 702 d", conflicts: ["d"]),
    MergeRow("chmod 600 f", "chmod 640 f", conflicts: ["f"]),
    MergeRow("echo 1 >>f; echo 1 >>g; touch n", "echo 2 >>f; rm g", conflicts: ["f", "g"]),
    // Nothing below a directory is lost when it is removed or becomes something else.
    MergeRow("rm -r d", "touch d/n", conflicts: ["d"]),
    MergeRow("rm -r d", "echo 1 >>d/f", conflicts: ["d"]),
    MergeRow("rm -r d", "chmod 701 d", conflicts: ["d"]),
    MergeRow("touch d/n", "rm -r d", conflicts: ["d"]),
    MergeRow("touch d/e/n", "rm -r d; touch d", conflicts: ["d"]),
    MergeRow("rm -r d; touch d", "touch d/e/n", conflicts: ["d"]),
    MergeRow("mkdir n", "touch n", conflicts: ["n"]),
    MergeRow("mv d x", "touch d/n", conflicts: ["d"]),
  ]
}

private func path(_ text: String) -> TreePath { TreePath(bytes: Array(text.utf8)) }

/// An item and its staged copy, changed on both sides.
private struct MergeScene {
  let scene: TreesScene
  let itemBefore: TreeManifest
  let stagedBefore: TreeManifest

  init(making: String) throws {
    scene = try TreesScene()
    try scene.shell(making)
    itemBefore = try TreeManifest(of: scene.item, at: scene.at)
    try scene.copy()
    stagedBefore = try TreeManifest(of: scene.staged, at: scene.at)
  }

  func plan() throws -> TreeMergePlan {
    TreeMergePlan(
      TreeMergeInput(
        itemBefore: itemBefore, stagedBefore: stagedBefore,
        itemNow: try TreeManifest(of: scene.item, at: scene.at),
        stagedNow: try TreeManifest(of: scene.staged, at: scene.at)))
  }

  func steps() throws -> [TreeMergeStep] {
    guard case .steps(let steps) = try plan() else {
      Issue.record("a conflict")
      return []
    }
    return steps
  }

  func apply(_ steps: [TreeMergeStep]) throws {
    try TreeMerge().apply(
      steps, of: TreeMerge.Side(name: scene.item, directory: scene.directory),
      to: TreeMerge.Side(name: scene.staged, directory: scene.directory))
  }
}

@Suite("The merge of an item's changes into its staged copy", .blocking)
struct TreesMergeTests {
  private static let making = """
    mkdir -p item/d/e item/d2; echo f >item/f; echo g >item/g; echo d/f >item/d/f
    touch item/d/e/f; ln -s nowhere item/l
    """

  @Test("carries over what only others changed, and tells conflicts", arguments: MergeRow.all)
  func table(_ row: MergeRow) throws {
    let merge = try MergeScene(making: Self.making)
    try merge.scene.shell("(cd item && \(row.item)); (cd staged && \(row.staged))")
    let plan = try merge.plan()
    #expect(plan == row.plan)
    guard case .steps(let steps) = plan else { return }
    try merge.apply(steps)
    #expect(try merge.plan() == .steps([]), "a second look finds nothing more to carry over")
    if row.staged == "true" {
      // Then all is as in the item.
      let list = "find . ! -type d -printf '%P %y %m %s %l\\n' -o -printf '%P %m\\n' | sort"
      let item = try merge.scene.shell("cd item && \(list)")
      let staged = try merge.scene.shell("cd staged && \(list)")
      #expect(staged == item)
    }
  }

  @Test("keeps a changed file the same file to those who have it open")
  func sameFile() throws {
    let merge = try MergeScene(making: Self.making)
    try merge.scene.shell("echo 1 >>item/f; mkdir item/n; touch item/n/f")
    let steps = try merge.steps()
    try merge.apply(steps)
    for name in ["f", "n/f"] {
      let inodes = try merge.scene.shell("stat -c %i item/\(name) staged/\(name) | uniq | wc -l")
      #expect(inodes == "1\n")
    }
  }

  @Test(
    "of single files, of new and of removed items follows the same rules",
    arguments: [
      ("echo 1 >>item", "true", TreeMergePlan.steps([.put(TreePath())]), "f\n1\n"),
      ("true", "echo 2 >>staged", .steps([]), "f\n2\n"),
      ("echo 1 >>item", "echo 2 >>staged", .conflicts([TreePath()]), "f\n2\n"),
      (
        "rm item", "true", .steps([.remove(TreePath())]), "cat: staged: No such file or directory\n"
      ),
      ("rm item", "echo 2 >>staged", .conflicts([TreePath()]), "f\n2\n"),
      ("rm item; mkdir item", "true", .steps([.put(TreePath())]), "cat: staged: Is a directory\n"),
    ])
  func file(_ item: String, _ staged: String, _ expected: TreeMergePlan, _ content: String) throws {
    let merge = try MergeScene(making: "echo f >item")
    try merge.scene.shell("\(item); \(staged)")
    let plan = try merge.plan()
    #expect(plan == expected)
    if case .steps(let steps) = plan { try merge.apply(steps) }
    #expect(try merge.scene.shell("LC_ALL=C cat staged") == content)
  }

  @Test("leaves an entry alone that has vanished since the plan was made")
  func vanished() throws {
    let merge = try MergeScene(making: Self.making)
    try merge.scene.shell("echo 1 >>item/f; mkdir item/n; echo 1 >>item/d/f; echo 1 >>item/g")
    let steps = try merge.steps()
    #expect(steps.count == 4)
    try merge.scene.shell("rm -r item/f item/n item/d")
    try merge.apply(steps)
    #expect(try merge.scene.shell("cat staged/g; ls staged/f staged/n 2>/dev/null") == "g\n1\n")
  }

  @Test("of random trees does what a simple three-way merge does", arguments: 0..<2)
  func random(_ run: Int) throws {
    let seed = TestSeed.next("TREES_MERGE_SEED")
    var model = ModelTrees(seed.generator)
    let base = model.tree(depth: 3)
    var merged = 0
    for _ in 0..<15 {
      let merge = try MergeScene(making: base.script(at: "item"))
      let item = model.changed(base)
      let staged = model.changed(base)
      try merge.scene.shell(
        base.script(from: item, at: "item") + base.script(from: staged, at: "staged"))
      let expected = ModelTree.merged(base: base, item: item, staged: staged)
      let plan = try merge.plan()
      switch (plan, expected) {
      case (.steps(let steps), .some(let expected)):
        try merge.apply(steps)
        let listed = try merge.scene.shell(
          "cd staged && find . -type d -printf '%P d\\n' -o -printf '%P %y %s\\n' | LC_ALL=C sort")
        #expect(listed == expected.listing, "\(seed)")
        merged += 1
      case (.conflicts, nil): continue
      default: Issue.record("\(seed): \(plan) where the model has \(String(describing: expected))")
      }
    }
    // More than half of all pairs of changes have no conflict.
    #expect(merged > 0, "\(seed)")
  }
}
