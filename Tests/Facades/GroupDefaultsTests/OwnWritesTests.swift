import Testing
import WormholePropertyLists
import WormholeTestSupport

@testable import GroupDefaults

/// The moments at which an observer may look during a write, one by one.
@Suite("An observer distinguishes its object's own writes from others'", .blocking)
struct OwnWritesTests {
  private let writes = OwnWrites()
  private let observer: Int

  init() { observer = writes.open() }

  private func look(_ value: Int, isOwn: Bool, _ comment: Comment) {
    writes.prepareLook(observer)
    #expect(writes.isOwn(.integer(Int64(value)), "k", observer: observer) == isOwn, comment)
    writes.finishLook(observer)
  }

  private func begin(_ old: Int, _ new: Int) -> Int {
    let number = writes.begin()
    writes.note(number, from: ["k": .integer(Int64(old))], to: ["k": .integer(Int64(new))])
    return number
  }

  @Test("when it looks before the write has returned")
  func inFlight() {
    let number = begin(0, 1)
    look(1, isOwn: true, "it is seen")
    look(1, isOwn: false, "another's, of the same value, before the write has returned")
    writes.end(number, isPublished: true)
    look(1, isOwn: false, "and after it")
  }

  @Test("when it looks after the write has returned")
  func ended() {
    writes.end(begin(0, 1), isPublished: true)
    look(1, isOwn: true, "it is seen")
    look(1, isOwn: false, "once")
  }

  @Test("when the write was overwritten before it looked")
  func overwritten() {
    writes.end(begin(0, 1), isPublished: true)
    look(2, isOwn: false, "another's")
    look(1, isOwn: false, "an overwritten write no longer counts")
  }

  @Test("when the write ends in the middle of a look")
  func endsMeanwhile() {
    let number = begin(0, 1)
    writes.prepareLook(observer)
    writes.end(number, isPublished: true)
    #expect(writes.isOwn(1, "k", observer: observer))
    writes.finishLook(observer)
    look(1, isOwn: false, "once")
  }

  @Test("when the write begins and ends within a look that does not see it yet")
  func seenLater() {
    writes.prepareLook(observer)
    let number = begin(5, 1)
    writes.end(number, isPublished: true)
    #expect(!writes.isOwn(5, "k", observer: observer))
    writes.finishLook(observer)
    look(1, isOwn: true, "the next one sees it")
  }

  @Test("when the write is repeated, fails, or changes nothing")
  func withoutEffect() {
    let failed = begin(0, 1)
    writes.end(failed, isPublished: false)
    look(1, isOwn: false, "failed")
    let kept = begin(0, 1)
    writes.forget(kept)
    writes.end(kept, isPublished: true)
    look(1, isOwn: false, "nothing changed")
    let again = begin(0, 1)
    writes.note(again, from: ["k": 6], to: ["k": 7])
    writes.end(again, isPublished: true)
    look(7, isOwn: true, "the final publication counts")
  }
}
