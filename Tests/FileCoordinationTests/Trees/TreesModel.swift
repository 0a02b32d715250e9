import TestSupport

/// A tree as a value: a file is told from others by its size.
indirect enum ModelTree: Equatable, Sendable {
  case file(Int)
  case directory([String: ModelTree])

  /// The textbook's three-way merge: whoever changed it prevails. Nil for a conflict.
  static func merged(base: ModelTree?, item: ModelTree?, staged: ModelTree?) -> ModelTree?? {
    if item == base || item == staged { return .some(staged) }
    if staged == base { return .some(item) }
    guard case .directory(let items) = item, case .directory(let stageds) = staged else {
      return nil
    }
    var bases: [String: ModelTree] = [:]
    if case .directory(let entries) = base { bases = entries }
    var result: [String: ModelTree] = [:]
    for name in Set(bases.keys).union(items.keys).union(stageds.keys) {
      guard
        let entry = merged(base: bases[name], item: items[name], staged: stageds[name])
      else { return nil }
      result[name] = entry
    }
    return .directory(result)
  }

  static func merged(base: ModelTree, item: ModelTree, staged: ModelTree) -> ModelTree? {
    let result: ModelTree?? = merged(
      base: Optional(base), item: Optional(item), staged: Optional(staged))
    return result.flatMap { $0 }
  }

  /// The commands that make it.
  func script(at path: String) -> String {
    switch self {
    case .file(let size): "head -c \(size) /dev/zero >\(path)\n"
    case .directory(let entries):
      "mkdir \(path)\n" + entries.map { $1.script(at: path + "/" + $0) }.joined()
    }
  }

  /// The commands that make another of it, and touch only what differs.
  func script(from other: ModelTree, at path: String) -> String {
    if self == other { return "" }
    guard case .directory(let old) = self, case .directory(let new) = other else {
      // A file is overwritten in place as often as it is replaced.
      if case .file = self, case .file(let size) = other, size % 2 == 0 {
        return other.script(at: path)
      }
      return "rm -r \(path)\n" + other.script(at: path)
    }
    return Set(old.keys).union(new.keys).map { name in
      let path = path + "/" + name
      switch (old[name], new[name]) {
      case (let old?, let new?): return old.script(from: new, at: path)
      case (nil, let new?): return new.script(at: path)
      case (_?, nil): return "rm -r \(path)\n"
      case (nil, nil): return ""
      }
    }.joined()
  }

  /// As `find . -printf '%P %y %s\n' | sort` prints it; directories without their sizes.
  var listing: String {
    lines(at: "").sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
      .map { $0 + "\n" }.joined()
  }

  private func lines(at path: String) -> [String] {
    switch self {
    case .file(let size): ["\(path) f \(size)"]
    case .directory(let entries):
      ["\(path) d"]
        + entries.flatMap { $1.lines(at: path.isEmpty ? $0 : path + "/" + $0) }
    }
  }
}

/// Makes random trees, and random changes of them; no two files that it makes are equal.
struct ModelTrees {
  private var generator: SeededGenerator
  private var count = 0

  init(_ generator: SeededGenerator) {
    self.generator = generator
  }

  mutating func tree(depth: Int) -> ModelTree {
    var entries: [String: ModelTree] = [:]
    for name in ["a", "b", "c", "d"] {
      if depth > 1, chance(2) {
        entries[name] = tree(depth: depth - 1)
      } else if chance(2) {
        entries[name] = file()
      }
    }
    return .directory(entries)
  }

  mutating func changed(_ tree: ModelTree) -> ModelTree {
    guard case .directory(var entries) = tree else { return chance(12) ? file() : tree }
    for name in ["a", "b", "c", "d"] {
      if let entry = entries[name] {
        if chance(20) {
          entries[name] = nil
        } else if chance(40) {
          entries[name] = chance(2) ? file() : .directory([:])
        } else {
          entries[name] = changed(entry)
        }
      } else if chance(20) {
        entries[name] = chance(2) ? file() : self.tree(depth: 1)
      }
    }
    return .directory(entries)
  }

  private mutating func file() -> ModelTree {
    count += 1
    return .file(count)
  }

  private mutating func chance(_ sides: Int) -> Bool {
    Int.random(in: 0..<sides, using: &generator) == 0
  }
}
