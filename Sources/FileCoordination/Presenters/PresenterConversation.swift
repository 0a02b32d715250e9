import SystemCalls
final class PresenterConversation: Sendable {
  static func begin(_ demands: [PresenterDemand], for client: PresenterClient, until deadline: ContinuousClock.Instant) throws -> PresenterConversation { PresenterConversation() }
  func finish(published: [String: FileStatus?]) {}
  static func tellMoved(from: String, to: String, by client: PresenterClient) {}
}
