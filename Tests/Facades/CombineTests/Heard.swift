import Combine
import Synchronization

/// What subscribers were told, in order.
final class Heard: Sendable {
  private let texts = Mutex<[String]>([])

  func add(_ text: String) { texts.withLock { $0.append(text) } }

  var all: [String] { texts.withLock { $0 } }
}

/// An error of tests.
enum Fault: Error { case broken }

/// Something that threads share as code for the original does.
///
/// `@unchecked`, because subjects and subscriptions are not Sendable, as in the original, and may be used by
/// any thread.
struct Shared<Value>: @unchecked Sendable {
  let value: Value

  init(_ value: Value) { self.value = value }
}

extension Publisher {
  /// Writes down each value, and the end.
  func sink(into heard: Heard, as name: String = "") -> AnyCancellable {
    sink {
      heard.add(name + ($0 == .finished ? "finished" : "failed"))
    } receiveValue: {
      heard.add("\(name)\($0)")
    }
  }
}

extension Subscribers.Completion {
  fileprivate static func == (left: Self, right: Self) -> Bool {
    if case .finished = left, case .finished = right { true } else { false }
  }
}

/// A subscriber whose demand a test chooses, and which may cancel at a value.
final class Asking<Input, Failure: Error>: Subscriber {
  let heard = Heard()
  private let more: Subscribers.Demand
  private(set) var subscription: (any Subscription)?

  private let last: String?

  init(more: Subscribers.Demand = .none, last: String? = nil) {
    (self.more, self.last) = (more, last)
  }

  func forget() { subscription = nil }

  func receive(subscription: any Subscription) { self.subscription = subscription }

  func receive(_ input: Input) -> Subscribers.Demand {
    heard.add("\(input)")
    if "\(input)" == last { subscription?.cancel() }
    return more
  }

  func receive(completion: Subscribers.Completion<Failure>) { heard.add("end") }
}
