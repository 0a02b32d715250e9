import Foundation
import Testing
import WormholeSystem
import WormholeTestSupport
import WormholeToolkit

@testable import WormholeFiles

/// COORDINATION_LARGE gives them their full size; otherwise they are smaller ones of the same kind.
@Suite("Large items", .blocking)
struct LargeItemTests {
  static let isFull = Program.environment("COORDINATION_LARGE") != nil

  private func memory(_ participant: Participant) throws -> Int {
    try #require(Int(try participant.ask("memory")))
  }

  @Test("A directory of very many entries is changed and deleted as a whole, with little memory")
  func manyEntries() throws {
    let scene = try RaceScene()
    let count = Self.isFull ? 100_000 : 1_000
    // Second names of a few files, as many as the file system allows for each.
    try scene.directory.shell(
      """
      mkdir d; cd d
      python3 -c 'import os
      for n in range(\(count)):
        first = "f%d" % (n - n % 1000)
        if n % 1000: os.link(first, "f%d" % n)
        else: open(first, "w").close()'
      """, in: "items", within: .seconds(300))
    let participant = try scene.participant()
    let before = try memory(participant)
    let d = scene.path("d")
    #expect(try participant.ask("writing \(d) tree=new", within: .seconds(300)) == "done")
    #expect(try scene.names(in: "d").count == count + 1)
    let grown = try memory(participant) - before
    print("\(count) entries: \(grown) KiB more memory")
    #expect(grown < 60_000 + count)
    #expect(try participant.ask("deleting \(d) erase=yes", within: .seconds(300)) == "done")
    try scene.expectOnly([])
  }

  @Test("A file of a gigabyte is changed with no more memory than a small one")
  func largeFile() throws {
    let scene = try RaceScene()
    let size =
      Self.isFull ? "dd if=/dev/zero of=large bs=1M count=1024 status=none" : "truncate -s 1G large"
    try scene.directory.shell(size + "; printf small >small", in: "items", within: .seconds(300))
    let participant = try scene.participant()
    let a = scene.path("large")
    #expect(try participant.ask("metadata \(scene.path("small")) read=yes") == "small")
    #expect(try participant.ask("writing \(scene.path("small"))").hasPrefix("inside "))
    #expect(try participant.ask("leave") == "done")
    let before = try memory(participant)
    #expect(try participant.ask("writing \(a) stamp=x", within: .seconds(300)) == "done")
    let grown = try memory(participant) - before
    print("a gigabyte: \(grown) KiB more memory")
    #expect(grown < 8_192)
    let status = try fileStatus(a)
    #expect(status.size == 1 << 30)
    let file = try FileHandle(forReadingFrom: scene.url("large"))
    #expect(try file.read(upToCount: 2) == Data([UInt8(ascii: "x"), 0]))
    try scene.expectOnly(["large", "small"])
  }

  /// It used to cost a copy, as every change.
  @Test("A line is appended to a gigabyte in place without a copy of it")
  func appending() throws {
    let scene = try RaceScene()
    try scene.directory.shell(
      "dd if=/dev/urandom of=large bs=1M count=8 status=none; truncate -s 1G large; "
        + "ln large second", in: "items", within: .seconds(300))
    let participant = try scene.participant()
    let before = try #require(Int(try participant.ask("written")))
    #expect(try participant.ask("inplace \(scene.path("large")) append=line") == "done")
    let written = try #require(Int(try participant.ask("written"))) - before
    #expect(written < 4_096)
    #expect(try fileStatus(scene.path("second")).size == 1 << 30 + 4)
    try scene.expectOnly(["large", "second"])
  }

  /// A file system whose files can share content.
  private static let make =
    "truncate -s 400M disk && mkfs.xfs -q -m reflink=1 disk && mkdir at && "
    + "mount -o loop disk at"
  static let hasReflinks: Bool = {
    let obstacle = MountNamespace.obstacle(to: make)
    if let obstacle { print("skipped: no file system with shared content here: \(obstacle)") }
    return obstacle == nil
  }()

  @Test("If files can share content, the copy takes no room", .enabled(if: hasReflinks))
  func reflinks() throws {
    let mounts = try MountNamespace()
    try mounts.run(Self.make)
    try mounts.run("mkdir at/items && dd if=/dev/urandom of=at/items/a bs=1M count=32 status=none")
    try mounts.run("sync -f at")
    let free = try #require(Int(try mounts.run("stat -f -c %f at")))
    let block = try #require(Int(try mounts.run("stat -f -c %S at")))
    let path = mounts.inside + "/at/items/a"
    try FileCoordinator().coordinate(writingItemAt: URL(filePath: path)) { copy in
      let now = try #require(Int(try mounts.run("sync -f at; stat -f -c %f at")))
      #expect((free - now) * block < 4 << 20, "32 MiB more would be a second copy")
      #expect(try fileStatus(copy.path).size == 32 << 20)
    }
    #expect(try mounts.run("ls -A at/items") == "a")
  }
}
