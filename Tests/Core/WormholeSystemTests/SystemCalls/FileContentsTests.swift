import Foundation
import Testing
import WormholeSystem
import WormholeTestSupport
import WormholeToolkit

@Suite("The content of a file", .blocking)
struct FileContentsTests {
  private static func bytes(_ count: Int) -> [UInt8] { (0..<count).map { UInt8($0 % 251) } }

  private static func file(_ content: [UInt8]) throws -> SharedDescriptor {
    let directory = try TemporaryDirectory()
    let path = "\(directory.path)/file"
    try FileDescriptor.open(path, [.writeOnly, .create]).writeAll(content)
    return SharedDescriptor(try FileDescriptor.open(path, .readOnly))
  }

  @Test(
    "is read whole, whatever the expected length was",
    arguments: [0, 1, 2, 4_095, 4_096, 4_097, 70_000])
  func whole(_ length: Int) throws {
    let content = Self.bytes(length)
    for said in [-1, 0, 1, length / 2, max(length - 1, 0), length + 1, length * 2, 100_000] {
      let file = try Self.file(content)
      let read = try file.descriptor.readToEnd(expectedBytes: said, maximumBytes: 200_000)
      #expect(read == content, "expected \(said)")
    }
  }

  @Test("is read to the limit and refused beyond it", arguments: [1, 4_095, 4_096, 10_000])
  func limit(_ maximum: Int) throws {
    for said in [0, 1, maximum - 1, maximum] {
      let fits = try Self.file(Self.bytes(maximum))
      #expect(
        try fits.descriptor.readToEnd(expectedBytes: said, maximumBytes: maximum)
          == Self.bytes(maximum))
      // The read stops at the expected length only if the file ends there.
      let beyond = try Self.file(Self.bytes(maximum + 1))
      #expect(throws: Errno.fileTooLarge, "expected \(said)") {
        try beyond.descriptor.readToEnd(expectedBytes: said, maximumBytes: maximum)
      }
    }
    let empty = try Self.file([])
    #expect(throws: Errno.fileTooLarge) {
      try empty.descriptor.readToEnd(expectedBytes: maximum + 1, maximumBytes: maximum)
    }
    #expect(try empty.descriptor.readToEnd(expectedBytes: 0, maximumBytes: 0) == [])
    let one = try Self.file([1])
    #expect(throws: Errno.fileTooLarge) {
      try one.descriptor.readToEnd(expectedBytes: 0, maximumBytes: 0)
    }
  }

  @Test("with the expected length takes one read")
  func oneRead() throws {
    let file = try Self.file(Self.bytes(5_000))
    let bench = try CallBench(.read, interruptions: 0)
    _ = try bench.act { try file.descriptor.readToEnd(expectedBytes: 5_000, maximumBytes: 9_000) }
    #expect(bench.attempts == 1)
  }

  @Test("grows while it is read: the content at the last read is returned")
  func growing() throws {
    let directory = try TemporaryDirectory()
    let path = "\(directory.path)/file"
    let writer = SharedDescriptor(try FileDescriptor.open(path, [.writeOnly, .create]))
    try writer.descriptor.writeAll([0])
    let reader = try FileDescriptor.open(path, .readOnly)
    // Before each of the first three reads the file grows beyond the expected length.
    let plan = Faults.Plan { call, index in
      guard call == .read, index < 3 else { return .proceed }
      do {
        try Faults.$plan.withValue(nil) { try writer.descriptor.writeAll(Self.bytes(5_000)) }
      } catch {
        return .fail(.inputOutput)
      }
      return .proceed
    }
    let read = try Faults.$plan.withValue(plan) {
      try reader.readToEnd(expectedBytes: 1, maximumBytes: 100_000)
    }
    #expect(read.count == 15_001)
    #expect(read == [0] + Self.bytes(5_000) + Self.bytes(5_000) + Self.bytes(5_000))
  }

  @Test("of /proc, whose files report that they are empty, is read whole")
  func proc() throws {
    let file = try FileDescriptor.open("/proc/self/maps", .readOnly)
    #expect(try file.status().size == 0)
    let text = try file.readToEnd(expectedBytes: 0, maximumBytes: 16 << 20)
    #expect(String(decoding: text, as: UTF8.self).contains("[stack]"))
  }

  @Test("that comes in pieces is put together")
  func shortReads() throws {
    let pipe = try makePipe()
    let number = pipe.write.rawValue
    let content = Self.bytes(300_000)
    // The thread is its only owner, so the pipe ends when the thread is done.
    let writer = Box(
      SharedDescriptor(FileDescriptor(owning: fcntl(number, F_DUPFD_CLOEXEC, 3))))
    let reader = pipe.takeRead()
    // A pipe holds 64 KiB at first (pipe(7)), so this is at least five pieces.
    try startThread(name: "writer") {
      do { try writer.take()?.descriptor.writeAll(content) } catch {
        print("cannot write: \(error)")
      }
    }
    let read = try reader.descriptor.readToEnd(expectedBytes: 0, maximumBytes: 1 << 20)
    #expect(read == content)
  }

  @Test("beyond the limit on the size of files is an error, not a death by signal", .ownProcess)
  func fileSizeLimit() throws {
    prepareSignals()
    let directory = try TemporaryDirectory()
    let path = "\(directory.path)/file"
    let file = try FileDescriptor.open(path, [.writeOnly, .create])
    var limit = rlimit(rlim_cur: 10_000, rlim_max: 10_000)
    #expect(setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit) == 0)
    do throws(Errno) {
      try file.writeAll([UInt8](repeating: 7, count: 20_000))
      Issue.record("the limit did not hold")
    } catch {
      #expect(error == .fileTooLarge, "\(error)")
    }
    #expect(try fileStatus(path).size == 10_000)
  }

  @Test("without a reader is an error, too", .ownProcess)
  func brokenPipe() throws {
    prepareSignals()
    let pipe = try makePipe()
    let writer = pipe.takeWrite()
    do throws(Errno) {
      try writer.descriptor.writeAll([1])
      Issue.record("there is no reader")
    } catch {
      #expect(error == .brokenPipe, "\(error)")
    }
  }
}
