import SystemCalls

/// What an item and its staged copy looked like at two times each.
struct TreeMergeInput {
  /// The item, before it was copied.
  let itemBefore: TreeManifest
  /// The staged copy, just after it was made.
  let stagedBefore: TreeManifest
  let itemNow: TreeManifest
  let stagedNow: TreeManifest
}

/// One thing to be done to the staged copy.
enum TreeMergeStep: Hashable, Sendable {
  /// What the item has there takes the place of what the staged copy has.
  case put(TreePath)
  case remove(TreePath)
  /// The directory gets the item's owner, mode and attributes.
  case setMetadata(TreePath)
}

/// How the changes that others made to an item get into a staged copy that was changed itself.
///
/// | the item was | the staged copy was | then |
/// |---|---|---|
/// | not changed | changed or not | the staged copy stays |
/// | changed | not changed | the item's state is carried over |
/// | changed | changed to the same | the staged copy stays |
/// | changed | changed otherwise | a conflict |
///
/// This holds for each entry, and where one side has a directory and the other has none, for all
/// below it together: a directory is removed only if nobody changed anything in it.
enum TreeMergePlan: Equatable, Sendable {
  /// In an order in which they can be done.
  case steps([TreeMergeStep])
  /// What was changed on both sides in different ways, sorted.
  case conflicts([TreePath])

  /// - Complexity: a look at each entry of the four manifests, and one more at those in directories
  ///   that only one side has.
  init(_ input: TreeMergeInput) {
    var decision = TreeMergeDecision(input)
    decision.run()
    self =
      decision.conflicts.isEmpty
      ? .steps(decision.steps) : .conflicts(decision.conflicts.sorted())
  }
}

private struct TreeMergeDecision {
  /// The same path in the four manifests; nil where there is nothing.
  private struct Node {
    var itemBefore: Int?
    var stagedBefore: Int?
    var itemNow: Int?
    var stagedNow: Int?
  }

  private let input: TreeMergeInput
  private(set) var steps: [TreeMergeStep] = []
  private(set) var conflicts: [TreePath] = []
  // Directories on both sides, whose entries are still to be decided.
  private var waiting: [(path: TreePath, node: Node)] = []

  init(_ input: TreeMergeInput) {
    self.input = input
  }

  mutating func run() {
    decide(
      Node(
        itemBefore: input.itemBefore.root, stagedBefore: input.stagedBefore.root,
        itemNow: input.itemNow.root, stagedNow: input.stagedNow.root), at: TreePath())
    while let (path, node) = waiting.popLast() {
      decideEntries(of: node, at: path)
    }
  }

  // The path is made only for what was changed: most was not.
  private mutating func decide(_ node: Node, at path: @autoclosure () -> TreePath) {
    if let item = node.itemNow, let staged = node.stagedNow,
      input.itemNow.entries[item].kind == .directory,
      input.stagedNow.entries[staged].kind == .directory
    {
      let path = path()
      decideMetadata(node, item: item, staged: staged, at: path)
      waiting.append((path, node))
    } else if !isSettled(node) {
      let isStagedUnchanged = input.stagedNow.isUnchanged(
        at: node.stagedNow, since: input.stagedBefore, at: node.stagedBefore)
      if !isStagedUnchanged {
        conflicts.append(path())
      } else if node.itemNow != nil {
        steps.append(.put(path()))
      } else {
        steps.append(.remove(path()))
      }
    }
  }

  /// Whether the staged copy is right as it is.
  private func isSettled(_ node: Node) -> Bool {
    let (item, staged) = (node.itemNow, node.stagedNow)
    if item == nil, staged == nil { return true }
    if let item, let staged,
      input.itemNow.entries[item].isEquivalent(to: input.stagedNow.entries[staged])
    {
      return true
    }
    return input.itemNow.isUnchanged(at: item, since: input.itemBefore, at: node.itemBefore)
  }

  /// Both are directories now: what is in them is decided entry by entry.
  private mutating func decideMetadata(
    _ node: Node, item: Int, staged: Int, at path: TreePath
  ) {
    let (item, staged) = (input.itemNow.entries[item], input.stagedNow.entries[staged])
    guard !item.hasSameMetadata(as: staged) else { return }
    let itemBefore = node.itemBefore.map { input.itemBefore.entries[$0] }
    let stagedBefore = node.stagedBefore.map { input.stagedBefore.entries[$0] }
    if let itemBefore, item.isUnchanged(since: itemBefore) { return }
    if let stagedBefore, staged.isUnchanged(since: stagedBefore) {
      steps.append(.setMetadata(path))
    } else {
      conflicts.append(path)
    }
  }

  /// Decides all names that any of the four has, in their order.
  private mutating func decideEntries(of node: Node, at path: TreePath) {
    let manifests = [input.itemBefore, input.stagedBefore, input.itemNow, input.stagedNow]
    let parents = [node.itemBefore, node.stagedBefore, node.itemNow, node.stagedNow]
    var lists = zip(manifests, parents).map { $0.children(of: $1) }
    while let first = Self.firstName(manifests, lists) {
      var found: [Int?] = [nil, nil, nil, nil]
      for side in manifests.indices {
        guard let next = lists[side].first,
          TreeManifest.compareNames(
            manifests[side], Int(next), manifests[first.side], first.index) == 0
        else { continue }
        found[side] = Int(next)
        lists[side] = lists[side].dropFirst()
      }
      decide(
        Node(
          itemBefore: found[0], stagedBefore: found[1], itemNow: found[2], stagedNow: found[3]),
        at: path.appending(manifests[first.side].name(of: first.index)))
    }
  }

  private static func firstName(
    _ manifests: [TreeManifest], _ lists: [ArraySlice<UInt32>]
  ) -> (side: Int, index: Int)? {
    var first: (side: Int, index: Int)?
    for side in manifests.indices {
      guard let next = lists[side].first else { continue }
      if let found = first,
        TreeManifest.compareNames(
          manifests[side], Int(next), manifests[found.side], found.index) >= 0
      {
        continue
      }
      first = (side, Int(next))
    }
    return first
  }
}
