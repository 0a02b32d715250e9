import Dispatch
import Synchronization
import TestSupport
import Testing

@testable import AppGroup

@Suite("A delivery")
struct DeliveryTests {
  @Test("looks again from a state that it is given while it looks")
  func redeliver() throws {
    let looks = Atomic(0)
    let calls = Heard<Int>()
    let box = Mutex<Delivery<Int>?>(nil)
    let delivery = Delivery<Int>(initial: 0, on: DispatchQueue(label: "test")) { last in
      if looks.add(1, ordering: .sequentiallyConsistent).newValue == 2 {
        box.withLock { $0?.redeliver(from: 0) }
      }
      let call: @Sendable () -> Void = { calls.add(1) }
      return (1, last == 1 ? nil : call)
    }
    box.withLock { $0 = delivery }
    delivery.open(signalled: true)
    try eventually("one") { calls.all.count == 1 }
    delivery.signal()
    try eventually("two", within: .seconds(3)) { calls.all.count == 2 }
    box.withLock { $0 = nil }
  }
}
