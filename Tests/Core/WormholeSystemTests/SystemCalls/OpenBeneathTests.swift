import Foundation
import Testing
import WormholeSystem
import WormholeTestSupport

@Suite("Opening beneath a directory", .blocking)
struct OpenBeneathTests {
  /// A plan for a kernel or sandbox without openat2(2).
  static var withoutOpenat2: Faults.Plan {
    Faults.Plan { call, _ in call == .openat2 ? .fail(.noFunction) : .proceed }
  }

  /// The two implementations.
  enum Way: String, CaseIterable {
    case kernel, walk, sandbox

    func run<Result>(_ body: () throws -> Result) throws -> Result {
      switch self {
      case .kernel: return try body()
      case .walk: return try Faults.$plan.withValue(withoutOpenat2, operation: body)
      case .sandbox:
        let refusing = Faults.Plan { call, _ in call == .openat2 ? .fail(.notPermitted) : .proceed }
        return try Faults.$plan.withValue(refusing, operation: body)
      }
    }
  }

  // outside/secret; inside/{file, d/{file, e/file}, link → d, d/up → ../../outside, d/name → file}
  private static func tree() throws -> TemporaryDirectory {
    let directory = try TemporaryDirectory()
    let path = directory.path
    for name in ["outside", "inside", "inside/d", "inside/d/e"] {
      try makeDirectory("\(path)/\(name)")
    }
    for name in ["outside/secret", "inside/file", "inside/d/file", "inside/d/e/file"] {
      let file = try FileDescriptor.open("\(path)/\(name)", [.writeOnly, .create])
      try file.writeAll(Array(name.utf8))
    }
    symlink("d", "\(path)/inside/link")
    symlink("../../outside", "\(path)/inside/d/up")
    symlink("file", "\(path)/inside/d/name")
    return directory
  }

  private static func open(
    _ name: String, in directory: TemporaryDirectory, _ options: OpenOptions = .readOnly
  ) throws -> String {
    let root = try FileDescriptor.open("\(directory.path)/inside", [.readOnly, .directory])
    let file = try FileDescriptor.openBeneath(
      name, at: root.rawValue, options.contains(.pathOnly) ? options : options.union(.nonBlocking))
    if options.contains(.pathOnly) || options.contains(.directory) { return "opened" }
    return String(
      decoding: try file.readToEnd(expectedBytes: 0, maximumBytes: 100), as: UTF8.self)
  }

  @Test("finds files at any depth", arguments: Way.allCases)
  func finds(_ way: Way) throws {
    let tree = try Self.tree()
    for name in ["file", "./file", "d/file", "d//file", "d/./e/file", "d/e/file"] {
      let found = try way.run { try Self.open(name, in: tree) }
      #expect(
        found == "inside/"
          + name.replacing("/./", with: "/").replacing("//", with: "/")
          .trimmingPrefix("./"))
    }
    #expect(try way.run { try Self.open("d/e", in: tree, .directory) } == "opened")
    #expect(try way.run { try Self.open("d/e/", in: tree, .directory) } == "opened")
  }

  @Test("refuses a path that leads out, with the same error", arguments: Way.allCases)
  func refuses(_ way: Way) throws {
    let tree = try Self.tree()
    let refusals: [(String, OpenOptions, Errno)] = [
      ("..", .readOnly, .crossesDevices),
      ("../outside/secret", .readOnly, .crossesDevices),
      ("d/../file", .readOnly, .crossesDevices),
      ("d/..", .directory, .crossesDevices),
      ("\(tree.path)/inside/file", .readOnly, .crossesDevices),
      ("/", .directory, .crossesDevices),
      ("link", .readOnly, .tooManyLinks),
      ("link", .directory, .tooManyLinks),
      ("link", .pathOnly, .tooManyLinks),
      ("link/", .directory, .tooManyLinks),
      ("link/file", .readOnly, .tooManyLinks),
      ("link/e/file", .readOnly, .tooManyLinks),
      ("d/up/secret", .readOnly, .tooManyLinks),
      ("d/name", .readOnly, .tooManyLinks),
      ("", .readOnly, .noSuchFile),
      ("none", .readOnly, .noSuchFile),
      ("none/file", .readOnly, .noSuchFile),
      ("file/file", .readOnly, .notDirectory),
      ("file/", .readOnly, .notDirectory),
      ("file", .directory, .notDirectory),
      ("new/", [.writeOnly, .create], .isDirectory),
    ]
    for (name, options, reason) in refusals {
      #expect(throws: reason, "\(name) \(options)") {
        try way.run { try Self.open(name, in: tree, options) }
      }
    }
  }

  @Test("accepts ordinary names with dots", arguments: Way.allCases)
  func dots(_ way: Way) throws {
    let tree = try Self.tree()
    for name in ["...", "..a", "a..", "d/a..b"] {
      let file = try FileDescriptor.open("\(tree.path)/inside/\(name)", [.writeOnly, .create])
      try file.writeAll(Array(name.utf8))
      #expect(try way.run { try Self.open(name, in: tree) } == name)
    }
  }

  @Test("creates files with the requested mode", arguments: Way.allCases)
  func creates(_ way: Way) throws {
    let tree = try Self.tree()
    let root = try FileDescriptor.open("\(tree.path)/inside", [.readOnly, .directory])
    for name in ["new", "d/new", "d/e/new"] {
      let create: OpenOptions = [.readWrite, .create, .exclusive]
      try way.run {
        try FileDescriptor.openBeneath(name, at: root.rawValue, create, mode: 0o400).close()
      }
      #expect(try fileStatus("\(tree.path)/inside/\(name)").permissions == 0o400)
      #expect(throws: Errno.alreadyExists) {
        try way.run { try FileDescriptor.openBeneath(name, at: root.rawValue, create).close() }
      }
    }
    #expect(throws: (any Error).self) {
      try way.run {
        try FileDescriptor.openBeneath("d/name", at: root.rawValue, [.writeOnly, .create]).close()
      }
    }
  }

  @Test("does not hang at a FIFO without a writer", arguments: Way.allCases)
  func fifo(_ way: Way) throws {
    let tree = try Self.tree()
    // A program that another test starts has a copy of each descriptor for a moment, so the FIFO that
    // was open for reading may still have a reader.
    for name in ["read", "written"] {
      #expect(mkfifo("\(tree.path)/inside/d/\(name)", 0o600) == 0)
    }
    #expect(try way.run { try Self.open("d/read", in: tree) } == "")
    #expect(throws: Errno.noSuchDevice) {
      try way.run { try Self.open("d/written", in: tree, .writeOnly) }
    }
  }
}
