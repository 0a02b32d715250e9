import Combine
import Foundation
import Testing
import WormholeTestSupport

/// A model of an app in the mode of Swift 6.
@MainActor
private final class SeatsModel: ObservableObject {
  @Published private(set) var seats: [Int] = []
  @Published var isSoldOut = false
  private var subscriptions: Set<AnyCancellable> = []

  func begin(_ reserved: AnyPublisher<[Int], Never>, _ center: NotificationCenter) {
    reserved.receive(on: DispatchQueue.main).sink { [weak self] seats in self?.seats += seats }
      .store(in: &subscriptions)
    $seats.map { $0.count > 2 }.removeDuplicates().assign(to: &$isSoldOut)
    center.publisher(for: Notification.Name("end")).map(\.name)
      .receive(on: RunLoop.main)
      .sink { [weak self] _ in self?.subscriptions = [] }
      .store(in: &subscriptions)
  }
}

@Suite("A model of the main actor", .blocking)
struct SwiftSixModelTests {
  @Test("changes on the main queue, whatever thread sends")
  @MainActor
  func changes() async throws {
    let model = SeatsModel()
    let reserved = PassthroughSubject<[Int], Never>()
    model.begin(reserved.eraseToAnyPublisher(), NotificationCenter())
    let sender = Shared(reserved)
    await Task.detached { for seat in 1...3 { sender.value.send([seat]) } }.value
    let deadline = ContinuousClock.now + testPatience
    while model.seats.count < 3, .now < deadline { try await Task.sleep(for: .milliseconds(1)) }
    #expect(model.seats == [1, 2, 3] && model.isSoldOut)
  }
}
