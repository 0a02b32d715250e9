import Testing
import WormholeSystem
import WormholeTestSupport

@testable import Wormhole

@Suite("A waiter for a lease", .blocking)
struct LeaseWaitingTests {
  let scene: LeaseScene
  let far = ContinuousClock.now + .seconds(30)

  init() throws { scene = try LeaseScene() }

  private func expectWaiting(_ request: LeaseRequest) throws {
    guard try LeaseScene.isWaiting(request) else {
      Issue.record("the lease is held")
      return
    }
  }

  // holder            waiter                  next holder
  // holds             waits
  //                                           takes it away, holds
  //                   waits for the new one
  //                                           ends
  //                   is woken
  @Test("is woken when the lease is free, even the next holder's after a takeover")
  func isWoken() throws {
    let holder = try scene.acquire(term: .seconds(600))
    let waiting = try scene.request()
    try expectWaiting(waiting)
    try scene.move("held", to: "broken-b")
    waiting.latch.block(until: far)
    #expect(ContinuousClock.now < far, "a takeover wakes as well")
    holder.end()
    let next = try scene.acquire(term: .seconds(600))
    try expectWaiting(waiting)
    // Drains the remaining events of the old lease.
    waiting.latch.block(until: .now)
    try expectWaiting(waiting)
    next.end()
    waiting.latch.block(until: far)
    #expect(ContinuousClock.now < far)
    try LeaseScene.finish(waiting).end()
    #expect(scene.litter == ["held"], "\(scene.directory.listing)")
  }

  // other                      this process
  // looks for leftovers
  //                            wants it only if it is free
  // has found none
  //                            has it
  @Test("with a past deadline gets a lease that is locked without a holder, only for a moment")
  func momentaryLock() throws {
    try scene.acquire().end()
    let other = try FileDescriptor.open(scene.lease + "/held", [.readOnly, .directory])
    #expect(try other.tryLock(.exclusive))
    let request = LeaseRequest(
      site: try scene.site(), term: SharedContainer.standardTerm, deadline: .now)
    guard case .spin = try request.step() else {
      Issue.record("it does not try again")
      return
    }
    try other.unlock()
    try LeaseScene.finish(request).end()
    let holder = try scene.acquire(term: .seconds(600))
    let refused = LeaseRequest(
      site: try scene.site(), term: SharedContainer.standardTerm, deadline: .now)
    #expect(throws: WormholeError.self) { _ = try refused.step() }
    holder.end()
  }
}
