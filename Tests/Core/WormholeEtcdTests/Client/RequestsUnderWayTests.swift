import Dispatch
import Testing
import WormholeSystem
import WormholeTestSupport

@testable import WormholeEtcd

@Suite("Requests that are made at once", .blocking)
struct RequestsUnderWayTests {
  @Test("are one, then two, then four, whose answers come in their order")
  func growth() throws {
    var requests = RequestsUnderWay<Int>()
    var number = 0
    for limit in [1, 2, 4, 4] {
      var begun: [Awaited<Int>] = []
      while !requests.isFull {
        let answer = Awaited<Int>()
        begun.append(answer)
        requests.add { answer.wait() }
      }
      #expect(begun.count == limit)
      // The last one ends first.
      for (place, answer) in begun.enumerated().reversed() { answer.settle(number + place) }
      while !requests.isEmpty {
        #expect(try requests.next() == number)
        number += 1
      }
    }
  }

  @Test("have all ended before a caller returns that gives up")
  func draining() throws {
    var requests = RequestsUnderWay<Int>()
    let isOver = Awaited<Bool>()
    requests.add {
      isOver.settle(true)
      throw EtcdError(.unreachable, "on purpose")
    }
    requests.drain()
    #expect(isOver.isSettled)
    #expect(throws: EtcdError.self) { try requests.next() }
  }

  @Test("are made by the caller if the process gets no thread for them")
  func withoutThreads() throws {
    let queue = Blocking.queue()
    let isOver = DispatchSemaphore(value: 0)
    queue.async { isOver.wait() }
    defer { isOver.signal() }
    var requests = RequestsUnderWay<Int>(on: { queue })
    for number in 1...3 { requests.add { number } }
    for number in 1...3 { #expect(try requests.next() == number) }
  }
}
