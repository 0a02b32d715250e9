import Combine
import Foundation
import Testing
import WormholeTestSupport

@Suite("A notification center", .blocking)
struct NotificationTests {
  @Test("publishes the notifications of a name and an object, until it is cancelled")
  func notifications() {
    let (heard, center, name) = (Heard(), NotificationCenter(), Notification.Name("seats"))
    let (object, other) = (NSObject(), NSObject())
    let subscriptions = [
      center.publisher(for: name).sink { heard.add("any \($0.userInfo?["n"] ?? 0)") },
      center.publisher(for: name, object: object).map { $0.userInfo?["n"] as? Int ?? 0 }
        .sink { heard.add("one \($0)") },
    ]
    center.post(name: name, object: object, userInfo: ["n": 1])
    center.post(name: name, object: other, userInfo: ["n": 2])
    center.post(name: Notification.Name("films"), object: object, userInfo: ["n": 3])
    #expect(heard.all.sorted() == ["any 1", "any 2", "one 1"])
    for each in subscriptions { each.cancel() }
    center.post(name: name, object: object, userInfo: ["n": 4])
    #expect(heard.all.count == 3)
    let asking = Asking<Notification, Never>()
    center.publisher(for: name).subscribe(asking)
    weak var subscription: AnyObject?
    subscription = asking.subscription as AnyObject?
    asking.subscription?.cancel()
    asking.forget()
    #expect(subscription == nil)
  }
}
