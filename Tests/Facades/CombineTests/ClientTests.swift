import Combine
import Foundation
import SharedUserDefaults
import Testing
import WormholeCombineClients
import WormholeTestSupport

extension UserDefaults {
  fileprivate var seats: Int { integer(forKey: "seats") }
}

@Suite("Code for the original", .blocking)
struct ClientTests {
  private let heard = Heard()
  @Test("compiles with subscribers and publishers of its own")
  func ownTypes() {
    let limited = Limited()
    CurrentValueSubject<Int, Never>(1).merge(with: Countdown(from: 3)).subscribe(limited)
    #expect(limited.received == [1, 3])
    let subscription = Countdown(from: 2).map { $0 * 10 }.sink(into: heard)
    #expect(heard.all == ["20", "10", "finished"])
    subscription.cancel()
  }

  /// The defaults of a group that only this process has.
  private func defaults(in directory: TemporaryDirectory) throws -> UserDefaults {
    setenv("XDG_DATA_HOME", directory.path, 1)
    return try #require(UserDefaults(suiteName: "group.com.example.cinema"))
  }

  @Test("hears the value of a key at once, and the changes of another object", .ownProcess)
  func keys() throws {
    let directory = try TemporaryDirectory()
    let (own, other) = (try defaults(in: directory), try defaults(in: directory))
    other.set(3, forKey: "seats")
    let subscriptions = [
      own.publisher(for: \.seats).sink(into: heard),
      own.publisher(for: \.seats, options: [.new]).sink(into: heard, as: "new "),
    ]
    #expect(heard.all == ["3"])
    other.set(4, forKey: "seats")
    try eventually("both hear it") { heard.all.count == 3 }
    own.set(5, forKey: "seats")
    #expect(heard.all.sorted() == ["3", "4", "5", "new 4", "new 5"])
    for each in subscriptions { each.cancel() }
    own.set(6, forKey: "seats")
    #expect(heard.all.count == 5)
  }

  @Test("has a model between a view and what it shows", .ownProcess)
  @MainActor
  func model() async throws {
    let directory = try TemporaryDirectory()
    let defaults = try defaults(in: directory)
    let model = SearchModel(films: ["Metropolis", "Memento", "Alien"], defaults: defaults)
    let subscriptions = [
      model.objectWillChange.sink { [heard] in heard.add("will") },
      model.selected.sink(into: heard),
    ]
    model.text = "Me"
    #expect(model.title == "Me: 0" && heard.all == ["will", "will"])
    let deadline = ContinuousClock.now + testPatience
    while model.title != "Me: 2", .now < deadline { try await Task.sleep(for: .milliseconds(1)) }
    #expect(model.title == "Me: 2" && model.results == ["Metropolis", "Memento"])
    model.select("Alien")
    // Of the text, its title, the volume, the results, and their title.
    #expect(heard.all == Array(repeating: "will", count: 5) + ["Alien"])
    NotificationCenter.default.post(name: Notification.Name("SearchModel.clear"), object: nil)
    #expect(model.text == "")
    for each in subscriptions { each.cancel() }
  }
}
