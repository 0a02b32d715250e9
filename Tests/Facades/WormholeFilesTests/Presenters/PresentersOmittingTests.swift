import Dispatch
import FoundationEssentials
import Testing
import Wormhole
import WormholePropertyLists
import WormholeSystem
import WormholeTestSupport

@testable import WormholeFiles

@Suite("A presenter is asked only for what it implements", .blocking)
struct PresentersOmittingTests {
  let scene: PresenterScene

  init() throws {
    scene = try PresenterScene(seesMessages: true)
    try scene.shell("mkdir d; echo 1 > d/file")
  }

  @Test("its type shows what it implements, even in a subclass or an extension")
  func known() {
    let path = scene.path("d/file")
    #expect(AnsweredSteps(of: ListeningPresenter(path)) == [])
    #expect(AnsweredSteps(of: SavingPresenter(path)) == [.save])
    #expect(AnsweredSteps(of: RecordingPresenter(path)) == .all)
    #expect(AnsweredSteps(of: Special(path)) == [.deletion, .subitemDeletion])
  }

  // It used to be asked for everything, and every access waited 2 seconds for it.
  @Test(
    "one that only receives changes delays no access, although its queue is blocked",
    arguments: [
      AccessKind.reading, .readingWithoutChanges,
      .content, .merging, .deleting,
    ])
  func blocked(_ kind: AccessKind) throws {
    let presenter = ListeningPresenter(scene.path("d/file"))
    try RegisteredPresenter.add(presenter)
    defer { RegisteredPresenter.remove(presenter) }
    let conversation = try scene.ask(kind, "d/file")
    #expect(conversation.silent.isEmpty)
    conversation.finish(published: [:])
  }

  @Test("one that only receives changes in another process is not even asked")
  func blockedElsewhere() throws {
    let other = try Participant(scene.directory.path)
    #expect(try other.ask("present \(scene.path("d/file")) listens") == "done")
    let conversation = try scene.ask(.deleting, "d/file")
    #expect(conversation.silent.isEmpty)
    #expect(try scene.unread().isEmpty)
    conversation.finish(published: [:])
  }

  @Test("one that saves is asked by accesses that want changes saved")
  func saving() throws {
    let presenter = SavingPresenter(scene.path("d/file"))
    try RegisteredPresenter.add(presenter)
    defer { RegisteredPresenter.remove(presenter) }
    try scene.ask(.readingWithoutChanges, "d/file").finish(published: [:])
    #expect(presenter.saved == 0)
    try scene.ask(.reading, "d/file").finish(published: [:])
    #expect(presenter.saved == 1)
  }

  @Test("a registration names the answered requests; without the list it gets all requests")
  func registered() {
    let steps: AnsweredSteps = [.save, .subitemDeletion]
    #expect(steps.propertyList == ["save", "subitemDeletion"])
    #expect(AnsweredSteps(steps.propertyList) == steps)
    #expect(AnsweredSteps(["save", "what comes later"]) == [.save])
    #expect(AnsweredSteps(nil) == .all)
  }
}

// Only constants, which are Sendable; the compiler does not accept this for a class that may have
// subclasses.
private class Closing: FilePresenter, @unchecked Sendable {
  let presentedItemQueue = DispatchQueue(label: "closing-presenter")
  let presentedItemURL: URL?
  init(_ path: String) { presentedItemURL = URL(filePath: path) }

  func accommodatePresentedItemDeletion(
    completionHandler: @escaping @Sendable ((any Error)?) -> Void
  ) { completionHandler(nil) }
}

extension Closing {
  func accommodatePresentedSubitemDeletion(
    at url: URL, completionHandler: @escaping @Sendable ((any Error)?) -> Void
  ) { completionHandler(nil) }
}

// Adds no state.
private final class Special: Closing, @unchecked Sendable {
  override func accommodatePresentedItemDeletion(
    completionHandler: @escaping @Sendable ((any Error)?) -> Void
  ) { completionHandler(nil) }
}
