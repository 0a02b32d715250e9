import Synchronization

/// Presenters that have been asked on behalf of several accesses to come.
final class Preparation: Sendable {
  private let coordinator: FileCoordinator
  private let paths: [String]
  private let conversation: Mutex<PresenterConversation?>

  init(
    _ requests: [AccessRequest], _ coordinator: FileCoordinator,
    until deadline: ContinuousClock.Instant
  ) throws {
    var demands: [PresenterDemand] = []
    var paths: [String] = []
    for request in requests {
      let location = try request.location()
      paths.append(location.path)
      if let demand = request.presenterDemand(at: location) { demands.append(demand) }
    }
    let conversation = try PresenterConversation.begin(
      demands, for: coordinator.client, until: deadline)
    self.coordinator = coordinator
    self.paths = paths
    self.conversation = Mutex(conversation)
    coordinator.setPrepared(paths, true)
  }

  deinit { end() }

  func end() {
    guard let conversation = conversation.withLock({ $0.take() }) else { return }
    coordinator.setPrepared(paths, false)
    conversation.finish(published: [:])
  }
}
