import Wormhole
import WormholeSystem
import WormholeTestSupport
import WormholeToolkit

@testable import WormholeFiles

/// A container with items, so that presenters of several processes meet only in it.
struct PresenterScene {
  let directory: TemporaryDirectory
  let container: SharedContainer
  /// Makes messages go as files, so that the test sees whether they were read.
  private let observation: MailboxObservation?

  init(seesMessages: Bool = false) throws {
    directory = try TemporaryDirectory()
    container = try directory.container()
    observation = seesMessages ? MailboxObservation(of: container.root) : nil
    try makeDirectory(directory.path + "/items")
  }

  func path(_ name: String) -> String { directory.path + "/items/" + name }

  /// Runs a shell command in the directory of the items, as an uncoordinated program.
  func shell(_ command: String) throws { try directory.shell(command, in: "items") }

  /// Presents an item while `body` runs.
  func presenting<Result>(
    _ name: String, _ manner: RecordingPresenter.Manner = .answers,
    meanwhile: @escaping @Sendable (String) -> Void = { _ in },
    _ body: (RecordingPresenter) throws -> Result
  ) throws -> Result {
    let presenter = RecordingPresenter(path(name), manner, meanwhile: meanwhile)
    try RegisteredPresenter.add(presenter)
    defer { RegisteredPresenter.remove(presenter) }
    return try body(presenter)
  }

  /// Waits until the presenter has recorded a line.
  func wait(_ presenter: RecordingPresenter, for line: String) throws {
    do {
      try eventually(line) { presenter.heard.contains(line) }
    } catch is NeverHappened {
      throw NeverHappened(what: "\(line) among \(presenter.heard)")
    }
  }

  /// Starts a conversation about an item.
  func ask(
    _ kind: AccessKind, _ name: String, by presenter: (any FilePresenter)? = nil
  ) throws -> PresenterConversation {
    try PresenterConversation.begin(
      [PresenterDemand(path: ItemPath(path(name)), kind: kind)], for: presenter,
      until: .now + .seconds(20))
  }

  /// Writes a file in one step, as a coordinated access publishes it.
  func publish(_ text: String, _ name: String) throws -> FileStatus {
    try shell("printf %s '\(text)' > .coordination-staged; mv .coordination-staged '\(name)'")
    return try fileStatus(path(name))
  }
}
