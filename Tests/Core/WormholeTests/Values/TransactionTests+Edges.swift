import Testing
import WormholePropertyLists
import WormholeSystem
import WormholeTestSupport

@testable import Wormhole

extension TransactionTests {
  @Test("Two names that Swift takes for equal are refused, because only one would be changed")
  func namesInTwoForms() throws {
    let names = ["\u{e9}", "e\u{301}"]
    for name in names { try container.value(name).replace(with: 1) }
    let isRefused = { (error: any Error) in (error as? AppGroupError)?.code == .unsupportedValue }
    #expect(performing: { try container.update(names) { $0[names[0]] = 2 } }, throws: isRefused)
    #expect(performing: { try container.read(names) }, throws: isRefused)
    #expect(try names.map { try container.value($0).read() } == [1, 1])
  }

  // The first once took the note of the second for its own, and made it begin again.
  @Test(
    "A holder that is late does not end a later transaction",
    .onlyDirectories("it stages the notes"))
  func late() throws {
    let value = container.value("a")
    try value.replace(with: 1)
    let lease = try LeaseRequest(
      site: value.directory.leaseSite(protecting: value.fileName), mode: .exclusive,
      term: .seconds(60), deadline: .now + .seconds(20)
    ).run()
    let at = try container.root.handle().descriptor.rawValue
    let (late, later) = (Transaction(nonce: "1"), Transaction(nonce: "2"))
    for path in [NameKind.own, Transaction.directory, later.path] {
      try container.root.makeDirectoryIfMissing(path, at: at)
    }
    try container.root.access.createFile(later.open, at: at).close()
    let part = Transaction.Part(transaction: later, number: 0, kind: .replace)
    try lease.leave(lease.stageNote(part))
    try container.root.settle(lease, of: late)
    #expect(try exists(later.open, at: at))
    try container.root.settle(lease, of: later)
    #expect(try !exists(later.open, at: at))
    #expect(try value.read() == 1)
  }
}
