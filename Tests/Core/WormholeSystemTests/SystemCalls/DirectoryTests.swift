import Foundation
import Synchronization
import Testing
import WormholeSystem
import WormholeTestSupport

@Suite("A directory", .blocking)
struct DirectoryTests {
  private static func touch(_ path: String, _ content: String = "") throws {
    try FileDescriptor.open(path, [.writeOnly, .create]).writeAll(Array(content.utf8))
  }

  @Test("returns names byte for byte, and files can be removed by them")
  func strangeNames() throws {
    let directory = try TemporaryDirectory()
    let names: [[UInt8]] = [
      [0xff, 0xfe], [0xc3], Array("new\nline".utf8), [UInt8](repeating: 0x78, count: 255),
      Array("...".utf8), [0x01], Array(" ".utf8), Array("-rf".utf8), Array("ä".utf8),
      Array("a\u{308}".utf8),
    ]
    for name in names {
      let path = FileName(bytes: Array(directory.path.utf8) + [0x2f] + name)
      let file = path.withCPath { creat($0, 0o600) }
      try FileDescriptor(owning: file).close()
    }
    try makeDirectory("\(directory.path)/directory")
    let open = try FileDescriptor.open(directory.path, [.readOnly, .directory])
    let entries = try open.entries()
    #expect(Set(entries.map(\.name.bytes)) == Set(names + [Array("directory".utf8)]))
    #expect(entries.count == names.count + 1)
    for entry in entries {
      #expect(entry.isDirectory == (entry.name.text == "directory"))
      if entry.isDirectory == true {
        try removeDirectory(entry.name, at: open.rawValue)
      } else {
        try removeFile(entry.name, at: open.rawValue)
      }
    }
    #expect(try open.entries().isEmpty)
  }

  @Test("of a thousand files is read whole, in several calls, again and again")
  func thousand() throws {
    let directory = try TemporaryDirectory()
    let names = Set((0..<1_000).map { "file number \($0)" })
    for name in names { try Self.touch("\(directory.path)/\(name)") }
    let open = try FileDescriptor.open(directory.path, [.readOnly, .directory])
    for _ in 0..<2 {
      let bench = try CallBench(.getdents64, interruptions: 0)
      let entries = try bench.act { try open.entries() }
      #expect(entries.count == 1_000)
      #expect(Set(entries.map(\.name.text)) == names)
      // At least 19 bytes and the name for each, 4 KiB per call (getdents(2)).
      #expect(bench.attempts >= 8)
    }
  }

  @Test("that is not one, or is gone, is an error")
  func errors() throws {
    let directory = try TemporaryDirectory()
    let path = directory.path
    try Self.touch("\(path)/file")
    #expect(throws: Errno.notDirectory) {
      try FileDescriptor.open("\(path)/file", .readOnly).entries()
    }
    #expect(throws: Errno.alreadyExists) { try makeDirectory("\(path)/file") }
    #expect(throws: Errno.isDirectory) { try removeFile(path) }
    #expect(throws: Errno.notDirectory) { try removeDirectory("\(path)/file") }
    #expect(throws: Errno.directoryNotEmpty) { try removeDirectory(path) }
    #expect(throws: Errno.fileNameTooLong) {
      try makeDirectory("\(path)/" + String(repeating: "x", count: 256))
    }
    #expect(throws: Errno.invalidArgument) { try linkTarget("\(path)/file") }
  }

  @Test("Renaming replaces, keeps or exchanges, and reports why it fails")
  func renameModes() throws {
    let directory = try TemporaryDirectory()
    let path = directory.path
    let open = try FileDescriptor.open(path, [.readOnly, .directory])
    let at = open.rawValue
    func content(_ name: String) throws -> String {
      let file = try FileDescriptor.open("\(path)/\(name)", .readOnly)
      return String(
        decoding: try file.readToEnd(expectedBytes: 1, maximumBytes: 9), as: UTF8.self)
    }
    try Self.touch("\(path)/a", "A")
    try Self.touch("\(path)/b", "B")
    #expect(throws: Errno.alreadyExists) { try rename("a", at: at, to: "b", at: at, .keep) }
    #expect(try content("a") + content("b") == "AB")
    #expect(throws: Errno.noSuchFile) { try rename("a", at: at, to: "c", at: at, .exchange) }
    #expect(throws: Errno.noSuchFile) { try rename("c", at: at, to: "a", at: at) }
    try rename("a", at: at, to: "b", at: at, .exchange)
    #expect(try content("a") + content("b") == "BA")
    try rename("a", at: at, to: "c", at: at, .keep)
    #expect(throws: Errno.noSuchFile) { try content("a") }
    try rename("b", at: at, to: "c", at: at)
    #expect(try content("c") == "A")
    #expect(try open.entries().count == 1)
    #expect(throws: Errno.alreadyExists) { try link("c", at: at, to: "c", at: at) }
    if let place = TemporaryDirectory.elsewhere {
      let elsewhere = try FileDescriptor.open(place, [.readOnly, .directory])
      #expect(throws: Errno.crossesDevices) {
        try rename("c", at: at, to: "wormhole-test-none", at: elsewhere.rawValue)
      }
    }
  }

  #if DEBUG
    @Test("Where the file system cannot keep what has the new name, renaming keeps it all the same")
    func keptInSteps() throws {
      let directory = try TemporaryDirectory()
      let open = try FileDescriptor.open(directory.path, [.readOnly, .directory])
      let at = open.rawValue
      func make(_ name: String, _ entries: [String]? = nil) throws {
        guard let entries else { return try Self.touch("\(directory.path)/\(name)") }
        try makeDirectory(name, at: at)
        for entry in entries { try Self.touch("\(directory.path)/\(name)/\(entry)") }
      }
      let refused = Atomic(Errno.invalidArgument.rawValue)
      let plan = Faults.Plan { call, _ in
        call == .renameat2
          ? .fail(Errno(rawValue: refused.load(ordering: .relaxed))) : .proceed
      }
      try Faults.$plan.withValue(plan) {
        for error in [Errno.invalidArgument, .noFunction, .unsupported] {
          refused.store(error.rawValue, ordering: .relaxed)
          for name in ["a", "taken"] { try make(name) }
          try make("full", ["x"])
          try make("empty", [])
          try make("directory", ["y"])
          for (old, new) in [
            ("a", "taken"), ("a", "full"), ("a", "empty"), ("directory", "full"),
            ("directory", "taken"),
          ] {
            #expect(throws: Errno.alreadyExists) { try rename(old, at: at, to: new, at: at, .keep) }
          }
          try rename("a", at: at, to: "b", at: at, .keep)
          try rename("directory", at: at, to: "empty", at: at, .keep)
          for new in ["none/c", "c"] {
            #expect(throws: Errno.noSuchFile) { try rename("a", at: at, to: new, at: at, .keep) }
          }
          #expect(throws: Errno.unsupported) {
            try rename("b", at: at, to: "taken", at: at, .exchange)
          }
          #expect(
            Set(try open.entries().map(\.name.text)) == ["b", "taken", "full", "empty"])
          for path in ["full/x", "empty/y", "b", "taken"] { try removeFile(path, at: at) }
          for path in ["full", "empty"] { try removeDirectory(path, at: at) }
        }
      }
    }

    @Test("that has neither such renames nor second names refuses them, and nothing has changed")
    func refusedKeeping() throws {
      let directory = try TemporaryDirectory()
      let open = try FileDescriptor.open(directory.path, [.readOnly, .directory])
      let at = open.rawValue
      try Self.touch("\(directory.path)/a")
      let rows: [(SystemCall, Errno, Errno)] = [
        (.linkat, .notPermitted, .unsupported), (.linkat, .noFunction, .unsupported),
        (.linkat, .noSpace, .noSpace), (.unlinkat, .inputOutput, .inputOutput),
      ]
      for (refused, error, expected) in rows {
        let wasRefused = Atomic(false)
        let plan = Faults.Plan { call, _ in
          if call == .renameat2 { return .fail(.invalidArgument) }
          guard call == refused, !wasRefused.exchange(true, ordering: .relaxed) else {
            return .proceed
          }
          return .fail(error)
        }
        #expect(throws: expected) {
          try Faults.$plan.withValue(plan) { try rename("a", at: at, to: "b", at: at, .keep) }
        }
        #expect(try open.entries().map(\.name.text) == ["a"])
      }
    }
  #endif

  @Test("on a network file system differs from a local one by statfs(2)'s numbers")
  func fileSystems() throws {
    // ext4, tmpfs, btrfs, xfs, overlayfs, proc: local. NFS, SMB 2, FUSE, 9p: not.
    for local: UInt32 in [0xEF53, 0x0102_1994, 0x9123_683E, 0x5846_5342, 0x794C_7630, 0x9FA0] {
      #expect(FileSystemKind(magic: local).networkName == nil)
    }
    let remote: [UInt32: String] = [
      0x6969: "nfs", 0xFE53_4D42: "smb2", 0x6573_5546: "fuse", 0x0102_1997: "9p",
    ]
    for (magic, name) in remote { #expect(FileSystemKind(magic: magic).networkName == name) }
    let shared = try FileDescriptor.open("/dev/shm", [.readOnly, .directory])
    #expect(try shared.fileSystem().networkName == nil)
  }

  @Test("An error has the words of the C library")
  func errorWords() {
    #expect(Errno.noSuchFile.description == "No such file or directory")
    #expect(Errno.noSpace.description == "No space left on device")
    #expect(Errno.interrupted.description == "Interrupted system call")
    #expect(Errno(rawValue: 9_999).description.contains("9999"))
    for number: Int32 in 1...133 {
      #expect(Errno(rawValue: number).description == String(cString: strerror(number)))
    }
  }
}
