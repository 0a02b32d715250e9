import AppGroup
import FileClaims
import FoundationEssentials
import PropertyLists
import Synchronization
import SystemCalls

/// Where presenters and coordinators of several processes meet: a container.
///
/// ```
/// own/presence/file-presenters/    a registration for each presenter: its identifier, its path, what it answers
/// own/presence/file-coordinators/  one for each process that has asked presenters of others
/// own/values/file-presenters/      what is being asked, and the answers: see `RequestBook`
/// ```
/// Nothing is made by looking whether there is a presenter.
final class PresenterSite: Sendable {
  /// A presenter of any process.
  struct Member: Sendable {
    let id: String
    let path: ItemPath
    let answered: AnsweredSteps
    let presence: PresenceMember

    var description: PresenterDescription {
      PresenterDescription(
        processID: presence.processID, program: presence.program, state: presence.state,
        path: path.text)
    }
  }

  /// The name of the value of requests.
  static let requests = "file-presenters"

  let container: SharedContainer
  let presenters: Presence
  let coordinators: Presence
  let book: RequestBook
  /// This process as a coordinator here, once it has asked a presenter.
  private let coordinator = Mutex<PresenceRegistration?>(nil)
  /// This process's answers to others.
  let server: PresenterServer

  init(_ container: SharedContainer) {
    self.container = container
    presenters = container.own.presence("file-presenters")
    coordinators = container.own.presence("file-coordinators")
    book = RequestBook(container.own.value(Self.requests))
    server = PresenterServer(book, coordinators)
  }

  /// All presenters that are registered here, this process's included.
  func members() throws -> [Member] {
    try presenters.members().compactMap { member in
      guard let id = member.content?["presenter"]?.stringValue,
        let path = member.content?["path"]?.stringValue, path.utf8.first == UInt8(ascii: "/")
      else { return nil }
      return Member(
        id: id, path: ItemPath(path), answered: AnsweredSteps(member.content?["answers"]),
        presence: member)
    }
  }

  func enter(
    _ id: String, _ path: ItemPath, _ answered: AnsweredSteps
  ) throws -> PresenceRegistration {
    try presenters.enter(content: [
      "presenter": .string(id), "path": .string(path.text), "answers": answered.propertyList,
    ])
  }

  /// This process's identifier as a coordinator. Its presence shows others that it lives.
  func coordinatorID() throws -> String {
    try coordinator.withLock { coordinator in
      if let coordinator { return coordinator.id }
      let new = try coordinators.enter()
      coordinator = new
      return new.id
    }
  }
}
