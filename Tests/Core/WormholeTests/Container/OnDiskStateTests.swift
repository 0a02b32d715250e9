import FoundationEssentials
import Testing
import Wormhole
import WormholePropertyLists
import WormholeSystem
import WormholeTestSupport

/// One state of `Fixtures/on-disk/states.txt`.
struct OnDiskState: Sendable, CustomTestStringConvertible {
  var name: String
  var directories: [String] = []
  var files: [(path: String, number: Int64?)] = []
  var reads: PropertyListValue?
  var leaves: [String] = []

  var testDescription: String { name }

  static let all: [OnDiskState] = {
    let file = Checkout.path("Fixtures/on-disk/states.txt")
    do {
      let bytes = try FileDescriptor.open(file, .readOnly).readToEnd(
        expectedBytes: 0, maximumBytes: 1 << 20)
      return parse(String(decoding: bytes, as: UTF8.self))
    } catch {
      preconditionFailure("\(file): \(error)")
    }
  }()

  private static func parse(_ text: String) -> [OnDiskState] {
    var states: [OnDiskState] = []
    for line in text.split(separator: "\n") where !line.hasPrefix("#") {
      let words = line.split(separator: " ").map(String.init)
      let argument = words.dropFirst().first ?? ""
      if words[0] == "state" {
        states.append(OnDiskState(name: words.dropFirst().joined(separator: " ")))
        continue
      }
      let last = states.count - 1
      switch words[0] {
      case "dir": states[last].directories.append(argument)
      case "file": states[last].files.append((argument, words.count > 2 ? Int64(words[2]) : nil))
      case "reads": states[last].reads = Int64(argument).map { .integer($0) }
      case "leaves": states[last].leaves = Array(words.dropFirst())
      default: preconditionFailure("unknown line: \(line)")
      }
    }
    return states
  }

  func build(in directory: TemporaryDirectory) throws {
    for path in directories { try make(path, in: directory) }
    for (path, number) in files {
      let parent = path.split(separator: "/").dropLast().joined(separator: "/")
      try make(parent, in: directory)
      let file = try FileDescriptor.open(directory.path + "/" + path, [.writeOnly, .create])
      if let number { try file.writeAll(try PropertyListValue.integer(number).binaryBytes()) }
    }
  }

  private func make(_ path: String, in directory: TemporaryDirectory) throws {
    var whole = directory.path
    for component in path.split(separator: "/") {
      whole += "/" + component
      do throws(Errno) {
        try makeDirectory(whole)
      } catch {
        guard error == .alreadyExists else { throw error }
      }
    }
  }
}

@Suite("Every state on disk that a crash may leave", .blocking)
struct OnDiskStateTests {
  @Test(
    "is read as the last published value, and repaired by the next change",
    arguments: OnDiskState.all)
  func isMended(state: OnDiskState) throws {
    let directory = try TemporaryDirectory()
    try state.build(in: directory)
    let value = try directory.container().value("k")
    #expect(try value.read() == state.reads)
    let before = state.reads?.int64Value ?? 0
    try value.update { $0 = .integer(before + 10) }
    #expect(try value.read() == .integer(before + 10))
    let lease = directory.path + "/values/k/lease"
    let outer = try FileDescriptor.open(lease, .readOnly).entries().map(\.name.text)
      .filter { !Litter.isPart($0) || state.leaves.contains($0) }
    let inner = try FileDescriptor.open(lease + "/held", .readOnly).entries().map(\.name.text)
    #expect(Set(outer) == Set(state.leaves + ["held"]), "\(directory.listing)")
    #expect(inner == ["clean"], "\(directory.listing)")
  }

  @Test("of a notification posts as one file again")
  func postFiles() throws {
    let directory = try TemporaryDirectory()
    let container = try directory.container()
    let registration = try container.notification("n").register()
    _ = try registration.check()
    try container.notification("n").post()
    #expect(try registration.check())
    let path = directory.path + "/notifications/n"
    try FileDescriptor.open(path + "/bell-second", [.writeOnly, .create]).close()
    #expect(try registration.check(), "two first posters at once")
    // As a process that has not posted last, and looks.
    try directory.container().notification("n").post()
    #expect(try registration.check())
    #expect(try FileDescriptor.open(path, .readOnly).entries().count == 1, "\(directory.listing)")
  }
}
