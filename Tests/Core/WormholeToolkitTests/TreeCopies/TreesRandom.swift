import WormholeSystem
import WormholeTestSupport

@testable import WormholeToolkit

/// Random trees with everything that a file system can hold.
struct RandomTree {
  var generator: SeededGenerator
  private var count = 0

  init(_ generator: SeededGenerator) {
    self.generator = generator
  }

  /// Creates a directory with approximately the given number of entries below it.
  mutating func make(_ name: FileName, at directory: Int32, entries: Int) throws {
    try makeDirectory(name, at: directory, mode: 0o755)
    let opened = try FileDescriptor.open(name, at: directory, [.readOnly, .directory])
    var left = entries
    while left > 0 {
      left -= 1
      if chance(4), left > 1 {
        let below = Int.random(in: 0...(left / 2), using: &generator)
        left -= below
        try make(newName(), at: opened.rawValue, entries: below)
      } else {
        try makeEntry(newName(), at: opened.rawValue)
      }
    }
    try decorate(opened, permissions: [0o755, 0o700, 0o2750, 0o1777])
  }

  /// Creates an entry that is not a directory.
  mutating func makeEntry(_ name: FileName, at directory: Int32) throws {
    switch Int.random(in: 0..<10, using: &generator) {
    case 0:
      let targets = ["nowhere", "../item", "/", "\u{1}", String(repeating: "x", count: 3_000)]
      try makeSymbolicLink(
        name, at: directory, target: FileName(targets.randomElement(using: &generator) ?? ""))
      try setModified(name, at: directory, seconds: random(1_000_000_000), nanoseconds: random(999))
    case 1:
      try makeFIFO(name, at: directory)
      try setPermissions(name, at: directory, 0o640)
    default:
      let file = try FileDescriptor.open(name, at: directory, [.readWrite, .create, .exclusive])
      try fill(file)
      try decorate(file, permissions: [0o644, 0o600, 0o755, 0o4755, 0o2711, 0o444, 0])
    }
  }

  private mutating func fill(_ file: borrowing FileDescriptor) throws {
    switch Int.random(in: 0..<6, using: &generator) {
    case 0: return
    case 1:
      // Holes before, between and after the data.
      for _ in 0..<Int.random(in: 0...2, using: &generator) {
        try file.seek(to: random(3_000_000))
        try file.writeAll(bytes(5_000))
      }
      try file.setLength(3_100_000)
    default: try file.writeAll(bytes(Int(random(20_000))))
    }
  }

  private mutating func decorate(
    _ file: borrowing FileDescriptor, permissions: [UInt32]
  ) throws {
    if chance(3) { try file.setAttribute(FileName("user.\(random(9))"), bytes(50)) }
    if chance(4) { try file.setAttribute(FileName("system.posix_acl_access"), accessList) }
    if Program.effectiveUser == 0, chance(3) { try file.setOwner(12_345, group: 54_321) }
    // Only root copies a file that its owner may not read.
    let permissions = permissions.filter { Program.effectiveUser == 0 || $0 & 0o400 != 0 }
    try file.setPermissions(permissions.randomElement(using: &generator) ?? 0)
    try file.setModified(seconds: random(2_000_000_000), nanoseconds: random(999_999_999))
  }

  /// user::rw-, user:4711:r--, group::r--, mask::rw-, other::--- in the attribute's form.
  private var accessList: [UInt8] {
    let entries: [(UInt16, UInt16, UInt32)] = [
      (0x01, 6, .max), (0x02, 4, 4_711), (0x04, 4, .max), (0x10, 6, .max), (0x20, 0, .max),
    ]
    return accessControlList(entries)
  }

  private mutating func newName() -> FileName {
    count += 1
    let forms: [[UInt8]] = [
      [0xff, 0xfe], Array("new\nline".utf8), Array(" ".utf8), Array("-rf".utf8), [0x01],
      Array("ä".utf8), [UInt8](repeating: 0x78, count: 200), Array("plain".utf8),
    ]
    return FileName(bytes: (forms.randomElement(using: &generator) ?? []) + Array("\(count)".utf8))
  }

  private mutating func chance(_ sides: Int) -> Bool {
    Int.random(in: 0..<sides, using: &generator) == 0
  }

  private mutating func random(_ limit: Int64) -> Int64 {
    Int64.random(in: 0..<limit, using: &generator)
  }

  private mutating func bytes(_ count: Int) -> [UInt8] {
    let step = UInt8.random(in: 1...255, using: &generator)
    return (0..<count).map { UInt8(truncatingIfNeeded: $0) &* step }
  }
}

/// Returns an access control list in the form of the kernel's posix_acl_xattr.h: version 2, then
/// tag, permissions and id of each entry.
func accessControlList(_ entries: [(UInt16, UInt16, UInt32)]) -> [UInt8] {
  var list: [UInt8] = [2, 0, 0, 0]
  for (tag, permissions, id) in entries {
    for half in [tag, permissions] { list += littleEndian(half) }
    list += littleEndian(id)
  }
  return list
}

private func littleEndian<Number: FixedWidthInteger>(_ number: Number) -> [UInt8] {
  withUnsafeBytes(of: number.littleEndian) { Array($0) }
}
