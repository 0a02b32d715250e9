import AppGroup
import Dispatch
import FoundationEssentials
import PropertyLists
import SystemCalls
import TestScopes
import TestSupport
import Testing

@testable import FileCoordination

@Suite("A presenter is asked only for what it implements", .blocking)
struct PresentersOmittingTests {
  let scene: PresenterScene

  init() throws {
    scene = try PresenterScene()
    try scene.shell("mkdir d; echo 1 > d/file")
  }

  @Test("what it implements is known of its type, also of a subclass and of an extension")
  func known() {
    let path = scene.path("d/file")
    #expect(AnsweredSteps(of: ListeningPresenter(path)) == [])
    #expect(AnsweredSteps(of: SavingPresenter(path)) == [.save])
    #expect(AnsweredSteps(of: RecordingPresenter(path)) == .all)
    #expect(AnsweredSteps(of: Special(path)) == [.deletion, .subitemDeletion])
  }

  // It used to be asked for everything, and everybody waited 2 seconds for it.
  @Test(
    "one that only hears of changes answers everybody, although its queue is blocked",
    arguments: [
      PresenterDemand.Kind.reading(savesChanges: true), .reading(savesChanges: false),
      .writing(.content), .writing(.merging), .writing(.deleting),
    ])
  func blocked(_ kind: PresenterDemand.Kind) throws {
    let presenter = ListeningPresenter(scene.path("d/file"))
    try PresenterRegistry.shared.add(presenter)
    defer { PresenterRegistry.shared.remove(presenter) }
    let conversation = try scene.ask(kind, "d/file")
    #expect(conversation.silent.isEmpty)
    conversation.finish(published: [:])
  }

  @Test("one that only hears of changes in another process is not even asked")
  func blockedElsewhere() throws {
    let other = try Participant(scene.directory.path)
    #expect(try other.ask("present \(scene.path("d/file")) listens") == "done")
    let conversation = try scene.ask(.writing(.deleting), "d/file")
    #expect(conversation.silent.isEmpty)
    #expect(try scene.requests().isEmpty)
    conversation.finish(published: [:])
  }

  @Test("one that saves is asked by those who want changes saved")
  func saving() throws {
    let presenter = SavingPresenter(scene.path("d/file"))
    try PresenterRegistry.shared.add(presenter)
    defer { PresenterRegistry.shared.remove(presenter) }
    try scene.ask(.reading(savesChanges: false), "d/file").finish(published: [:])
    #expect(presenter.saved == 0)
    try scene.ask(.reading(savesChanges: true), "d/file").finish(published: [:])
    #expect(presenter.saved == 1)
  }

  @Test("a registration names what is answered, and one that does not is asked for everything")
  func registered() {
    let steps: AnsweredSteps = [.save, .subitemDeletion]
    #expect(steps.propertyList == ["save", "subitemDeletion"])
    #expect(AnsweredSteps(steps.propertyList) == steps)
    #expect(AnsweredSteps(["save", "what comes later"]) == [.save])
    #expect(AnsweredSteps(nil) == .all)
  }
}

// Only constants, which are Sendable: what the compiler grants no class that may have subclasses.
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
