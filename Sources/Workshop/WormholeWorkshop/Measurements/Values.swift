package import Wormhole
package import WormholePropertyLists
package import WormholeSystem
import WormholeTerminals
import WormholeToolkit

/// The other side may have made it.
package func makeDirectoryIfMissing(_ path: String) throws(Errno) {
  _ = try tolerating([.alreadyExists], makeDirectory(path))
}

/// create, write, close.
///
/// - Parameter waits: Whether to wait until the content is written, without the metadata.
package func writeNew(
  _ content: [UInt8], _ name: String, in directory: borrowing FileDescriptor, durably: Bool = false,
  waits: Bool = false
) throws(Errno) {
  let file = try FileDescriptor.open(
    name, at: directory.rawValue, [.writeOnly, .create, .exclusive])
  try file.writeAll(content)
  if durably { try file.synchronize() }
  if waits { try file.writeBack() }
}

/// create, write, close, rename, as most programs publish a file.
package func writeAndRename(
  _ content: [UInt8], to name: String, in directory: borrowing FileDescriptor, durably: Bool = false
) throws(Errno) {
  try writeNew(content, "new", in: directory, durably: durably)
  try rename("new", at: directory.rawValue, to: name, at: directory.rawValue)
  if durably { try directory.synchronize() }
}

/// The floor: the same files in the same directory structure, written and read with only the
/// necessary system calls, on descriptors that stay open.
///
/// It is in the same container as our value, under another name. ext4 looks for a free inode in the
/// group of the directory and skips all inodes that were freed there recently (up to 0.4 ms), so
/// only neighboring directories are comparable.
///
/// The content is 200 bytes that begin with a 64-bit number.
package final class RawValue: Sendable {
  package static let contentBytes = 200

  private let directory: FileDescriptor
  private let held: FileDescriptor
  private let container: FileDescriptor
  private let path: String

  /// Opens the directory of a value, and creates it if it is missing.
  package init(_ container: String, _ name: String) throws(Errno) {
    for part in ["", "/\(name)", "/\(name)/lease", "/\(name)/lease/held"] {
      try makeDirectoryIfMissing(container + "/values" + part)
    }
    self.container = try .open(container, [.readOnly, .directory])
    path = "values/\(name)/value.plist"
    directory = try .open(container + "/values/" + name, [.readOnly, .directory])
    held = try .open(container + "/values/" + name + "/lease/held", [.readOnly, .directory])
  }

  package static func content(_ number: UInt64) -> [UInt8] {
    withUnsafeBytes(of: number) { Array($0) } + [UInt8](repeating: 0x20, count: contentBytes - 8)
  }

  /// create, write, close, exchange, unlink; the first time: create, write, close, rename.
  package func publish(
    _ content: [UInt8], durably: Bool = false, waits: Bool = false
  ) throws(Errno) {
    try writeNew(content, "staged", in: held, durably: durably, waits: waits)
    let (held, directory) = (held.rawValue, directory.rawValue)
    if try ifPresent(rename("staged", at: held, to: "value.plist", at: directory, .exchange)) != nil
    {
      try removeFile("staged", at: held)
    } else {
      try rename("staged", at: held, to: "value.plist", at: directory)
    }
    if durably { try self.directory.synchronize() }
  }

  /// create, write, close, rename over the old file, as most programs do.
  package func publishByRenamingOver(_ content: [UInt8]) throws(Errno) {
    try writeAndRename(content, to: "value.plist", in: directory)
  }

  /// open, fstat, read, close. Returns the number at the beginning of the content.
  package func read() throws(Errno) -> UInt64 {
    let file = try FileDescriptor.open(path, at: container.rawValue, .readOnly)
    _ = try file.status()
    return try file.readNumber()
  }

  /// open, fstat, read, close. Returns all bytes.
  package func readAll() throws(Errno) -> [UInt8] {
    let file = try FileDescriptor.open(path, at: container.rawValue, .readOnly)
    let bytes = Int(try file.status().size)
    return try file.readToEnd(expectedBytes: bytes, maximumBytes: bytes)
  }

  /// flock, read, write, unlock.
  ///
  /// - Parameter write: Writes the new content; nil for the same writes as ours.
  package func increment(_ write: (([UInt8]) throws -> Void)? = nil) throws {
    try held.lockBlocking(.exclusive)
    let content = Self.content((try ifPresent(read()) ?? 0) + 1)
    if let write { try write(content) } else { try publish(content) }
    try held.unlock()
  }
}

extension FileDescriptor {
  /// Makes one read; returns the number at the beginning, or 0 if there are fewer bytes.
  package func readNumber() throws(Errno) -> UInt64 {
    let result = withUnsafeTemporaryAllocation(byteCount: 4_096, alignment: 8) { buffer in
      Result { () throws(Errno) in
        try read(into: buffer) >= 8 ? buffer.load(as: UInt64.self) : 0
      }
    }
    return try result.get()
  }
}

/// The value of the rows about our own code: 200 bytes on disk with a number among them.
package enum SharedCount {
  /// The payload of rows about entries and requests.
  package static let payload = PropertyListValue.string(String(repeating: "x", count: 160))

  private static let padding = PropertyListValue.string(String(repeating: "x", count: 138))

  package static func content(_ number: UInt64) -> PropertyListValue {
    ["count": .integer(Int64(number)), "padding": padding]
  }

  package static func number(_ value: PropertyListValue?) -> UInt64 {
    value?["count"]?.uint64Value ?? 0
  }

  package static func increment(_ value: PlainValue) throws {
    try value.update { $0 = content(number($0) + 1) }
  }
}

/// Replacing a value of 200 bytes, against the bare calls and against the calls of most programs; and
/// reading it.
package enum ValueRows {
  private static let ours = SharedCount.content(1)
  private static let theirs = RawValue.content(1)

  package static func measure(_ bench: Bench) throws -> [Row] {
    let (value, raw) = try bench.value("publish")
    let over = try RawValue(bench.path + "/publish", "raw-over")
    let publish: () throws -> Void = { try value.replace(with: ours) }
    let results = try alternate(
      rounds: bench.shortRounds, runs: 4, [publish, { try raw.publish(theirs) }])
    // Many in a row: renaming over a file starts to write the new blocks out, and the next rename
    // waits for that.
    let slow = try alternate(
      rounds: bench.rounds, runs: 50, [publish, { try over.publishByRenamingOver(theirs) }])
    let size = try value.snapshot().bytes()?.count ?? 0
    return [
      Row(
        "publish / exchange + unlink", ours: results[0], floor: results[1],
        expected: .ratioAtMost(1.5), notes: ["\(size) bytes"]),
      Row(
        "publish, 50 in a row / rename over", ours: slow[0], floor: slow[1],
        expected: try bench.onExt4(0.2),
        notes: [
          "the bare exchange + unlink takes \(fixed(results[1].median / slow[1].median, 2)) of it"
        ]),
    ]
  }

  /// Measures the first publication after a quiet second, which waits until its content is written.
  /// A process that has not published the value recently waits the same way, which saves the pauses
  /// here.
  package static func measureLone(_ bench: Bench) throws -> [Row] {
    let place = try bench.directory("lone")
    let raw = try RawValue(place, "raw")
    let count = bench.scaled(30)
    let results = try alternate(
      rounds: bench.rounds,
      [
        {
          let values = try (0..<count).map { _ in try SharedContainer(path: place).value("value") }
          var next = values.makeIterator()
          return try nanosecondsPerRun(count) { try next.next()?.replace(with: ours) }
        },
        { try nanosecondsPerRun(count) { try raw.publish(theirs) } },
        { try nanosecondsPerRun(count) { try raw.publish(theirs, durably: true) } },
      ])
    return [
      Row(
        "publish, alone in its second / fsync ×2", ours: results[0], floor: results[2],
        expected: .ratioAtMost(1),
        notes: ["exchange + unlink takes \(fixed(results[1].median / 1_000, 1)) µs"])
    ]
  }

  package static func measureDurable(_ bench: Bench) throws -> [Row] {
    let (value, raw) = try bench.value("durable")
    return [
      try bench.compare(
        "publish, durable / fsync ×2", rounds: bench.rounds, runs: bench.scaled(30),
        ours: { try value.replace(with: ours, durability: .durable) },
        floor: { try raw.publish(theirs, durably: true) })
    ]
  }

  /// Measures reading it: as bytes, and decoded.
  package static func measureReading(_ bench: Bench) throws -> [Row] {
    let (value, raw) = try bench.value("read")
    try value.replace(with: ours)
    try raw.publish(theirs)
    let results = try alternate(
      rounds: bench.shortRounds, runs: 60,
      [{ _ = try value.snapshot().bytes() }, { _ = try value.read() }, { _ = try raw.read() }])
    return [
      Row("read, bytes / open + fstat + read", ours: results[0], floor: results[2]),
      Row("read, decoded / open + fstat + read", ours: results[1], floor: results[2]),
    ]
  }
}

/// Read-modify-write of one number. The floor locks with a `flock` that waits, reads, and makes the same
/// writes.
package enum UpdateRows {
  package static func measureAlone(_ bench: Bench) throws -> [Row] {
    let (value, raw) = try bench.value("update")
    let over = try RawValue(bench.path + "/update", "raw-over")
    let increment = { try SharedCount.increment(value) }
    let rows = [
      try bench.compare(
        "update / flock + read + writes", rounds: bench.shortRounds, runs: 4,
        expected: .ratioAtMost(1.5), ours: increment, floor: { try raw.increment() }),
      try bench.compare(
        "update, 50 in a row / flock + read + rename over", rounds: bench.rounds, runs: 50,
        expected: try bench.onExt4(0.2), ours: increment,
        floor: { try over.increment { try over.publishByRenamingOver($0) } }),
      try together(bench),
    ]
    let done = UInt64(4 * (bench.shortRounds + 1))
    try check(try raw.read(), done)
    try check(SharedCount.number(try value.read()), done + UInt64(50 * (bench.rounds + 1)))
    return rows
  }

  private static func together(_ bench: Bench) throws -> Row {
    let container = try bench.container("update-2")
    let names = ["a", "b"]
    let values = ["c", "d"].map(container.value)
    return try bench.compare(
      "update of 2 values in one step / 2 updates", rounds: bench.shortRounds, runs: 4,
      ours: {
        try container.update(names) { values in
          for name in names {
            values[name] = SharedCount.content(SharedCount.number(values[name]) + 1)
          }
        }
      }, floor: { for value in values { try SharedCount.increment(value) } })
  }

  package static func check(_ found: UInt64, _ expected: UInt64) throws {
    guard found == expected else {
      throw Failure(description: "\(expected) updates were made and \(found) counted")
    }
  }
}
