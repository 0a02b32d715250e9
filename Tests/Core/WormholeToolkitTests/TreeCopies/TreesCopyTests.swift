import Foundation
import Testing
import WormholeTestSupport

@testable import WormholeSystem
@testable import WormholeToolkit

@Suite("The copy of an item", .blocking)
struct TreesCopyTests {
  @Test("equals the item, as other programs see both", arguments: 0..<3)
  func random(_ run: Int) throws {
    let seed = TestSeed.next("TREES_COPY_SEED")
    let scene = try TreesScene()
    var tree = RandomTree(seed.generator)
    try tree.make(scene.item, at: scene.at, entries: 60)
    try scene.copy()
    let differences = try scene.differences()
    #expect(differences == "", "\(seed)")
    #expect(try attributes(scene, "item") == attributes(scene, "staged"), "\(seed)")
  }

  // Python reads attributes independently; without it another test compares them through our own
  // call.
  private func attributes(_ scene: TreesScene, _ name: String) throws -> String {
    try scene.shell(
      """
      cd \(name) && python3 -c "
      import os
      for place, directories, files in os.walk(b'.'):
          for path in [place] + [os.path.join(place, name) for name in sorted(files)]:
              names = sorted(os.listxattr(path, follow_symlinks=False))
              print(path, [(name, os.getxattr(path, name, follow_symlinks=False)) for name in names])
      " | sort
      """)
  }

  @Test("of a file is created in an empty place, and of nothing is an error that names it")
  func file() throws {
    let scene = try TreesScene()
    let missing = try #require(throws: TreeError.self) { try scene.copy() }
    #expect(missing.description == "cannot copy item: No such file or directory")
    try scene.shell("echo hello >item; chmod 640 item; ln -s item staged")
    let inTheWay = try #require(throws: TreeError.self) { try scene.copy() }
    #expect(inTheWay.reason == .refused(.alreadyExists))
    #expect(try scene.shell("rm staged; cat item") == "hello\n")
    try scene.copy()
    #expect(try scene.shell("cat staged; stat -c %a staged") == "hello\n640\n")
  }

  @Test("of a file that was just written shows a change in the same tick, if it must")
  func distinct() throws {
    // A file is just written for a moment only, in which this process may have no processor.
    let times = try (0..<20).map { _ in
      let scene = try TreesScene()
      try scene.shell("mkdir item; echo hello >item/file")
      try setModified(
        FileName("item/file"), at: scene.at, seconds: realTime().seconds + 1, nanoseconds: 5)
      try scene.copy(TreeCopy(isDistinct: true))
      return try fileStatus("staged/file", at: scene.at).modifiedNanoseconds
    }
    #expect(times.contains(4), "\(times)")
  }

  // It may have been written at the end of that second.
  @Test("of a file that was written in this second is distinct if its time has whole seconds")
  func distinctInWholeSeconds() throws {
    let scene = try TreesScene()
    try scene.shell("mkdir item; echo hello >item/file")
    let now = realTime().seconds
    try setModified(FileName("item/file"), at: scene.at, seconds: now, nanoseconds: 0)
    try scene.copy(TreeCopy(isDistinct: true))
    #expect(try fileStatus("staged/file", at: scene.at).modifiedSeconds == now - 1)
  }

  @Test("creates FIFOs again, links or omits sockets, and refuses devices by name")
  func specialFiles() throws {
    let scene = try TreesScene()
    try scene.shell(
      """
      mkdir -p item/below; mkfifo -m 604 item/below/fifo
      python3 -c "import socket; socket.socket(socket.AF_UNIX).bind('item/socket')"
      """)
    try scene.copy()
    let same = try scene.shell(
      "stat -c %i item/socket staged/socket | uniq | wc -l; rm staged/socket")
    #expect(same == "1\n")
    let fifos = try scene.shell("cd staged && find . ! -type d -printf '%P %y %m %n\\n'")
    #expect(fifos == "below/fifo p 604 1\n")
    #if DEBUG
      try scene.shell("rm -r staged")
      let refusing = Faults.Plan { call, _ in call == .linkat ? .fail(.notPermitted) : .proceed }
      try Faults.$plan.withValue(refusing) { try scene.copy() }
      #expect(try scene.shell("ls staged") == "below\n")
    #endif
    guard Program.effectiveUser == 0 else { return }
    try scene.shell("rm -r staged; mknod item/below/null c 1 3")
    let refused = try #require(throws: TreeError.self) { try scene.copy() }
    #expect(refused.path.text == "item/below/null" && refused.reason == .unsupported(.device))
    #expect(refused.description.contains("item/below/null"))
  }

  @Test("of 1 GiB of holes has holes")
  func sparse() throws {
    let scene = try TreesScene()
    try scene.shell(
      """
      truncate -s 1G item; printf hello | dd of=item bs=1 seek=700000000 conv=notrunc status=none
      touch -d '2001-02-03 04:05:06.789' item
      """)
    try scene.copy()
    let content = try scene.shell("dd if=staged bs=1 skip=700000000 count=5 status=none")
    #expect(content == "hello")
    let status = try scene.shell("stat -c '%s %y' staged | cut -c-29")
    #expect(status == "1073741824 2001-02-03 04:05:0\n")
    let blocks = try scene.shell("du -k staged | cut -f1").filter(\.isNumber)
    #expect(try #require(Int(blocks)) < 1_000)
  }

  @Test("omits the given names, at any depth, but not the item's own")
  func leftOut() throws {
    let scene = try TreesScene()
    try scene.shell("mkdir -p item/.ours item/a/.ours/b; touch item/.ours/c item/a/d item/a/.oursx")
    var settings = TreeCopy()
    settings.leavesOut = { $0.text == ".ours" || $0.text == "item" }
    try scene.copy(settings)
    #expect(
      try scene.shell("cd staged && find . | LC_ALL=C sort") == ".\n./a\n./a/.oursx\n./a/d\n")
  }

  @Test("can be cancelled between entries and between pieces, with the reason")
  func cancelled() throws {
    struct GivenUp: Error {}
    let scene = try TreesScene()
    try scene.shell("mkdir -p item/a/b; touch item/a/b/c; head -c 30000000 /dev/zero >item/large")
    var calls = 0
    var settings = TreeCopy()
    settings.check = { calls += 1 }
    try scene.copy(settings)
    // Four entries, and the pieces of the large one, unless its content is shared.
    #expect(calls > 4)
    for last in 1...calls {
      try scene.shell("rm -r staged")
      var left = last
      settings.check = {
        left -= 1
        if left == 0 { throw GivenUp() }
      }
      #expect(throws: GivenUp.self) { try scene.copy(settings) }
    }
  }

  @Test("of a tree 1,000 deep, with a path too long for any call, needs few descriptors")
  func deep() throws {
    let scene = try TreesScene()
    let level = FileName("a directory's name")
    var directory = try FileDescriptor.open(scene.place.path, [.readOnly, .directory])
    for depth in 0...1_000 {
      let name = depth == 0 ? scene.item : level
      try makeDirectory(name, at: directory.rawValue)
      directory = try FileDescriptor.open(name, at: directory.rawValue, [.readOnly, .directory])
      // Names on the way back up, too.
      try makeDirectory(FileName("other"), at: directory.rawValue)
    }
    try FileDescriptor.open(FileName("last"), at: directory.rawValue, [.writeOnly, .create])
      .close()
    var calls = 0
    var most = 0
    var settings = TreeCopy()
    settings.check = {
      calls += 1
      if calls % 100 == 0 { most = max(most, try openBelow(scene.place.path)) }
    }
    try scene.copy(settings)
    #expect(most > 3 && most < 60)
    let list = "find . -printf '%d %f %y %m\\n' | sort"
    #expect(
      try scene.shell("(cd item && \(list)) >one; (cd staged && \(list)) >two; cmp one two")
        == "")
    #expect(try scene.shell("cat two | wc -l").filter(\.isNumber) == "2003")
  }

  /// Returns the number of this process's descriptors below a directory.
  private func openBelow(_ path: String) throws -> Int {
    let numbers = try FileDescriptor.open("/proc/self/fd", [.readOnly, .directory]).entries()
    return numbers.filter { Int32($0.name.text).map { isBelow(path, $0) } ?? false }.count
  }

  private func isBelow(_ path: String, _ descriptor: Int32) -> Bool {
    do {
      return try linkTarget("/proc/self/fd/\(descriptor)").hasPrefix(path + "/")
    } catch Errno.fileNameTooLong {
      // Other tests have such trees, too, so a directory further up decides.
      let up = String(repeating: "../", count: 100)
      // It fails for a file, and for a descriptor that another test has closed since.
      guard let above = try? FileDescriptor.open(up, at: descriptor, [.readOnly, .directory])
      else { return false }
      return isBelow(path, above.rawValue)
    } catch {
      // Another test has closed it since.
      return false
    }
  }
}
