import Combine
import Foundation

extension UserDefaults {
  // For Apple's systems it is `@objc dynamic`.
  var volume: Int { integer(forKey: "volume") }
}

/// A model between a view and what it shows, in the form that such apps have.
public final class SearchModel: ObservableObject {
  @Published public var text = ""
  @Published public private(set) var results: [String] = []
  @Published public private(set) var isLoud = false
  private var cancellables = Set<AnyCancellable>()
  private let selection = CurrentValueSubject<String?, Never>(nil)
  private let failures = PassthroughSubject<String, Error>()

  public var selected: AnyPublisher<String, Never> {
    selection.compactMap { $0 }.removeDuplicates().eraseToAnyPublisher()
  }

  public init(films: [String], defaults: UserDefaults, delay: TimeInterval = 0) {
    $text
      .dropFirst()
      .debounce(for: .seconds(delay), scheduler: DispatchQueue.main)
      .removeDuplicates()
      .map { text in films.filter { $0.hasPrefix(text) } }
      .receive(on: RunLoop.main)
      .sink { [weak self] in self?.results = $0 }
      .store(in: &cancellables)
    defaults.publisher(for: \.volume)
      .map { $0 > 10 }
      .receive(on: DispatchQueue.main)
      .assign(to: &$isLoud)
    NotificationCenter.default.publisher(for: Notification.Name("SearchModel.clear"))
      .merge(with: NotificationCenter.default.publisher(for: Notification.Name("SearchModel.end")))
      .sink { [weak self] _ in self?.text = "" }
      .store(in: &cancellables)
    Publishers.both($text, $results) { "\($0): \($1.count)" }
      .sink { [weak self] in self?.title = $0 }
      .store(in: &cancellables)
    failures
      .sink(
        receiveCompletion: { [weak self] completion in
          switch completion {
          case .finished: break
          case .failure(let error): self?.title = error.localizedDescription
          }
        }, receiveValue: { print($0) }
      )
      .store(in: &cancellables)
  }

  public var title = "" {
    willSet { objectWillChange.send() }
  }

  public func select(_ film: String) { selection.send(film) }
}

/// A helper of the app's own, which spells types.
private enum Publishers {
  static func both<A, B, T>(
    _ first: Published<A>.Publisher, _ second: Published<B>.Publisher,
    _ transform: @escaping (A, B) -> T
  ) -> AnyPublisher<T, Never> {
    first.combineLatest(second, transform).eraseToAnyPublisher()
  }
}

/// A subscriber of the app's own.
public final class Limited: Subscriber {
  public typealias Input = Int
  public typealias Failure = Never

  public private(set) var received: [Int] = []

  public init() {}

  public func receive(subscription: Subscription) { subscription.request(.max(2)) }

  public func receive(_ input: Int) -> Subscribers.Demand {
    received.append(input)
    return .none
  }

  public func receive(completion: Subscribers.Completion<Never>) {}
}

/// A publisher of the app's own.
public struct Countdown: Publisher {
  public typealias Output = Int
  public typealias Failure = Never

  private let start: Int

  public init(from start: Int) { self.start = start }

  public func receive<S>(subscriber: S)
  where S: Subscriber, Failure == S.Failure, Output == S.Input {
    subscriber.receive(subscription: Counting(subscriber, start))
  }

  private final class Counting<S: Subscriber>: Subscription where S.Input == Int {
    private var subscriber: S?
    private let start: Int

    init(_ subscriber: S, _ start: Int) {
      self.subscriber = subscriber
      self.start = start
    }

    func request(_ demand: Subscribers.Demand) {
      for number in (1...start).reversed() { _ = subscriber?.receive(number) }
      subscriber?.receive(completion: .finished)
      subscriber = nil
    }

    func cancel() { subscriber = nil }
  }
}
