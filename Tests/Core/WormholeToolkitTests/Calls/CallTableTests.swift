import Testing
import WormholePropertyLists
import WormholeTestSupport

@testable import Wormhole
@testable import WormholeToolkit

@Suite("The table of open calls", .blocking) struct CallTableTests {
  private final class Writer: MailboxWriter {
    let path = ""

    func post(_ bytes: [UInt8], until deadline: ContinuousClock.Instant?) -> PostOutcome { .posted }
  }

  private func call(in table: inout CallTable, about subject: String = "") -> UInt64 {
    table.insert(replyTo: "a") { key in
      .init(key: key, subject: subject, deadline: nil, end: { _ in }, request: 1)
    }
  }

  @Test("A call that ends while it is posted is noted, once, and one that is answered is not")
  func posting() {
    var table = CallTable(acceptedBytes: 100)
    let (cancelled, answered) = (call(in: &table), call(in: &table))
    for id in [cancelled, answered] {
      #expect(table.beginPosting(id, to: Writer(), at: "1", isWatched: false)?.request == 1)
    }
    #expect(table.take(cancelled) != nil && table.takeAnswered(answered) != nil)
    #expect(table.take(cancelled) == nil)
    #expect(table.beginPosting(cancelled, to: Writer(), at: "1", isWatched: false) == nil)
    let hasEnded = [cancelled, cancelled, answered].map { table.endPosting($0, isPosted: true) }
    #expect(hasEnded == [true, false, false])
  }

  @Test("A request is kept until it is posted")
  func request() {
    var table = CallTable(acceptedBytes: 100)
    let id = call(in: &table)
    _ = table.beginPosting(id, to: Writer(), at: "1", isWatched: true)
    _ = table.endPosting(id, isPosted: false)
    #expect(table.calls[id]?.request == 1)
    _ = table.beginPosting(id, to: Writer(), at: "2", isWatched: true)
    _ = table.endPosting(id, isPosted: true)
    #expect(table.calls[id]?.request == nil && table.calls[id]?.callee?.address == "2")
  }

  @Test("Calls are taken in the order in which they were made")
  func order() {
    var table = CallTable(acceptedBytes: 100)
    let ids = (0..<50).map { call(in: &table, about: $0.isMultiple(of: 2) ? "a" : "b") }
    let even = table.take { $0.subject == "a" }.map(\.key.id)
    #expect(even == ids.enumerated().filter { $0.offset.isMultiple(of: 2) }.map(\.element))
    #expect(table.calls.count == 25)
  }

  @Test("A process keeps its first writer, and one without open calls is forgotten among many")
  func others() {
    var table = CallTable(acceptedBytes: 100)
    let first = Writer()
    #expect(table.enter(first, at: "0", watchedBy: nil).writer === first)
    #expect(table.enter(Writer(), at: "0", watchedBy: nil).writer === first)
    let id = call(in: &table)
    _ = table.beginPosting(id, to: first, at: "0", isWatched: false)
    for number in 1..<1_000 { _ = table.enter(Writer(), at: "\(number)", watchedBy: nil) }
    #expect(table.others.count == 1_000)
    let dropped = table.enter(Writer(), at: "1000", watchedBy: nil).dropped
    #expect(dropped.compactMap(\.self).count == 999)
    #expect(Set(table.others.keys) == ["0", "1000"])
  }
}
