import Testing
import WormholeSystem
import WormholeTestSupport
import WormholeToolkit

@Suite("Copying between files", .blocking)
struct FileCopyingTests {
  @Test("finds the next data, and the next hole")
  func holes() throws {
    let directory = try TemporaryDirectory()
    let path = directory.path + "/file"
    let file = try FileDescriptor.open(path, [.readWrite, .create])
    try file.setLength(10 << 20)
    #expect(try file.nextData(from: 0) == nil)
    try file.seek(to: 4 << 20)
    try file.writeAll([UInt8](repeating: 1, count: 65_536))
    #expect(try file.nextData(from: 0) == 4 << 20)
    #expect(try file.nextHole(from: 4 << 20) == 4 << 20 + 65_536)
    #expect(try file.nextData(from: 5 << 20) == nil)
    #expect(try file.nextData(from: 10 << 20) == nil)
    let status = try file.status()
    #expect(status.allocatedBytes >= 65_536 && status.allocatedBytes < status.size)
  }

  @Test("moves ranges to the same place, and ends at the end")
  func ranges() throws {
    let directory = try TemporaryDirectory()
    let source = try FileDescriptor.open(directory.path + "/source", [.readWrite, .create])
    try source.writeAll(Array("hello".utf8))
    let target = try FileDescriptor.open(directory.path + "/target", [.readWrite, .create])
    #expect(try target.copyRange(of: source, from: 2, count: 100) == 3)
    #expect(try target.copyRange(of: source, from: 5, count: 100) == 0)
    #expect(
      try target.readToEnd(expectedBytes: 5, maximumBytes: 9) == [0, 0] + Array("llo".utf8))
  }

  @Test("keeps long attributes whole, and many of them")
  func attributes() throws {
    let directory = try TemporaryDirectory()
    let file = try FileDescriptor.open(directory.path + "/file", [.readWrite, .create])
    #expect(throws: Errno.noSuchAttribute) { try file.attribute(FileName("user.none")) }
    // More than the first attempt of 1 KiB has room for, and less than a block of ext4 for all.
    let value = (0..<1_500).map { UInt8($0 % 251) }
    try file.setAttribute(FileName("user.long"), value)
    try file.setAttribute(FileName("user.empty"), [])
    #expect(try file.attribute(FileName("user.long")) == value)
    #expect(try file.attribute(FileName("user.empty")) == [])
    let names = (0..<12).map { "user." + String(repeating: "x", count: 100) + "\($0)" }
    for name in names { try file.setAttribute(FileName(name), []) }
    let all = try file.attributeNames().map(\.text).filter { $0.hasPrefix("user.") }
    #expect(Set(all) == Set(names + ["user.long", "user.empty"]))
  }
}
