import Testing
import WormholePropertyLists
import WormholeSystem
import WormholeTestSupport

@testable import Wormhole

@Suite("Several values in one step, in a directory", .blocking)
struct TransactionHostileTests {
  private let directory: TemporaryDirectory
  private let container: SharedContainer

  init() throws {
    directory = try TemporaryDirectory()
    container = try directory.container()
  }

  private func state(_ names: [String]) throws -> [Int64?] {
    try names.map { try container.value($0).read()?.int64Value }
  }

  @Test(
    "a hostile note, or a transaction without its parts, disturbs neither readers nor writers")
  func hostile() throws {
    let notes = [
      "", "zz 0 replace", "abc 0 replace\n", "abc 99999999999999999999 replace", "abc -1 remove",
      "../../x 0 replace", "abc 0 remove\n", String(repeating: "a", count: 300),
    ]
    for note in notes {
      try container.value("a").replace(with: 1)
      let place = directory.path + "/values/a/lease/transaction"
      try ItemText.write(note, to: place)
      try FileDescriptor.open(container.value("a").path, .readOnly).setPermissions(0o700)
      #expect(try state(["a", "b"]) == [1, nil], "\(note)")
      // A holder that finds leftovers of a dead one looks at it.
      try ItemText.write("", to: directory.path + "/values/a/lease/held/x-1")
      try container.value("a").replace(with: 5)
      #expect(try state(["a"]) == [5])
      #expect(try !exists(place, at: Directory.current), "\(note)")
    }
    try makeDirectory(directory.path + "/values/a/lease/transaction")
    try ItemText.write("", to: directory.path + "/values/a/lease/held/x-1")
    try container.value("a").replace(with: 6)
    #expect(try state(["a"]) == [6])
    // Committed, with a directory in the place of the content.
    for path in ["/own", "/own/transactions", "/own/transactions/abc", "/own/transactions/abc/0"]
    where try !exists(directory.path + path, at: Directory.current) {
      try makeDirectory(directory.path + path)
    }
    try ItemText.write("", to: directory.path + "/own/transactions/abc/committed")
    try container.value("z").replace(with: 1)
    try container.value("z").remove()
    try ItemText.write("abc 0 replace", to: directory.path + "/values/z/lease/transaction")
    let error = #expect(throws: WormholeError.self) { try container.value("z").read() }
    #expect(error?.code == .notAValue)
  }

  #if DEBUG
    // A value whose directory could not be opened was taken for one without a part in it.
    @Test("a committed transaction stays in a sweep that fails at any step")
    func failingSweep() throws {
      try container.value("a").replace(with: 1)
      for path in ["/own", "/own/transactions", "/own/transactions/abc"] {
        try makeDirectory(directory.path + path)
      }
      try ItemText.write("", to: directory.path + "/own/transactions/abc/committed")
      try ItemText.write(
        "<plist><integer>2</integer></plist>", to: directory.path + "/own/transactions/abc/0")
      try ItemText.write("abc 0 replace", to: directory.path + "/values/a/lease/transaction")
      try FileDescriptor.open(container.value("a").path, .readOnly).setPermissions(0o700)
      #expect(try state(["a"]) == [2])
      var call = 0
      while true {
        let plan = Faults.Plan { [call] _, index in
          index == call ? .fail(.accessDenied) : .proceed
        }
        // Whether it reports the failure does not matter.
        try? Faults.$plan.withValue(plan) {
          try Transaction.sweep("own/transactions/abc", in: container.root)
        }
        #expect(try state(["a"]) == [2], "call \(call)")
        if plan.calls <= call { break }
        call += 1
      }
      #expect(call > 3)
    }
  #endif
}
