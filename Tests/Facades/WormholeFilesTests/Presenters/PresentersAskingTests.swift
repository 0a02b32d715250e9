import Dispatch
import FoundationEssentials
import Synchronization
import Testing
import Wormhole
import WormholeSystem
import WormholeTestSupport

@testable import WormholeFiles

@Suite("Presenters of the same process are asked before an access", .blocking)
struct PresentersAskingTests {
  let scene: PresenterScene

  init() throws {
    scene = try PresenterScene()
    try scene.shell("mkdir d; echo 1 > d/file")
  }

  @Test("each callback in its order, and the reacquirer once, when the access is over")
  func order() throws {
    try scene.presenting("d/file", .reacquires) { presenter in
      let reading = try scene.ask(.reading, "d/file")
      #expect(presenter.heard == ["reader", "save"])
      #expect(reading.silent.isEmpty)
      let deleting = try scene.ask(.deleting, "d")
      #expect(presenter.heard == ["reader", "save", "writer", "deletion"])
      reading.finish(published: [:])
      try eventually("it has the item back") { presenter.heard.last == "reacquired" }
      presenter.forget()
      reading.finish(published: [:])
      deleting.finish(published: [:])
      try eventually("and back from the other") { presenter.heard == ["reacquired"] }
    }
  }

  @Test("a second answer to the same request is ignored, with its reacquirer")
  func answeringTwice() throws {
    try scene.presenting("d/file", .answersTwice) { presenter in
      let conversation = try scene.ask(.merging, "d/file")
      conversation.finish(published: [:])
      try scene.shell("mv d/file d/last")
      try scene.wait(presenter, for: "moved:last")
      #expect(presenter.heard == ["save", "writer", "reacquired", "moved:last"])
    }
  }

  @Test("one at a time and in order, even on a concurrent queue")
  func concurrentQueue() throws {
    let presenter = ConcurrentPresenter(scene.path("d"))
    let callbacks = PresenterQueue(presenter)
    let post: @Sendable (Int) -> Void = { [weak callbacks] number in
      guard number < 100 else { return }
      callbacks?.post([.subitemAppeared(ItemPath("/\(number)"))])
    }
    // Each while the previous one is being handled.
    presenter.next.withLock { $0 = post }
    post(0)
    try eventually("all are reported") { presenter.heard.count == 100 }
    #expect(presenter.heard == (0..<100).map(String.init))
    #expect(!presenter.hasOverlapped)
  }

  @Test("one that answers after the access gets its item back at once, and each only once")
  func lateAnswer() throws {
    let held = Mutex<[@Sendable () -> Void]>([])
    let registered = RegisteredPresenter(
      HoldingPresenter { answer in held.withLock { $0.append(answer) } })
    let given = Mutex(0)
    for isLate in [true, false] {
      let exchange = PresenterExchange(registered, [.relinquishToWriter], isForCallback: false) {
        _ in
      }
      exchange.start()
      try eventually("it is asked") { held.withLock { !$0.isEmpty } }
      if isLate { exchange.finish() }
      for answer in held.withLock({ $0 }) { answer() }
      held.withLock { $0 = [] }
      exchange.finish()
      exchange.finish()
      registered.callbacks.post(isOwed: true) { _ in given.withLock { $0 += 1 } }
      try eventually("what is owed is done") { given.withLock { $0 } == (isLate ? 1 : 2) }
      guard let holding = registered.presenter as? HoldingPresenter else { return }
      #expect(holding.count == (isLate ? 1 : 2))
    }
  }

  @Test("an error of one of them ends the access before it begins, and the others get theirs back")
  func refusal() throws {
    try scene.presenting("d/file", .reacquires) { other in
      try scene.presenting("d/file", .refuses) { presenter in
        let error = #expect(throws: RecordingPresenter.Refusal.self) {
          try scene.ask(.reading, "d/file")
        }
        #expect(error != nil)
        #expect(presenter.heard == ["reader", "save"])
        try eventually("the other has its item back") {
          other.heard.filter { $0 == "reacquired" }.count
            == other.heard.filter { $0 == "reader" }.count
        }
      }
    }
  }

  @Test("one that does not answer is named, and the access continues")
  func silence() throws {
    try scene.presenting("d/file", .isSilent) { presenter in
      let conversation = try scene.ask(.content, "d/file")
      #expect(conversation.silent.map(\.path) == [scene.path("d/file")])
      #expect(conversation.silent.map(\.processID) == [Program.processID])
      conversation.finish(published: [:])
      #expect(presenter.heard == ["writer"])
    }
  }

  @Test("one that removes itself in the callback counts as having answered")
  func leaving() throws {
    try scene.presenting("d/file", .leaves) { presenter in
      let conversation = try scene.ask(.reading, "d/file")
      #expect(conversation.silent.isEmpty)
      #expect(presenter.heard == ["reader"])
      #expect(RegisteredPresenter.registered(presenter) == nil)
      conversation.finish(published: [:])
    }
  }

  @Test("one may coordinate in its callback, with itself as the presenter")
  func coordinatesInside() throws {
    let inner = Mutex<[String]>([])
    let box = PresenterBox()
    let scene = scene
    let saving: @Sendable (String) -> Void = { line in
      guard line == "save" else { return }
      do {
        let own = try scene.ask(.content, "d/file", by: box.presenter)
        let status = try scene.publish("saved", "d/file")
        own.finish(published: [ItemPath(scene.path("d/file")): status])
        inner.withLock { $0.append("saved") }
      } catch {
        inner.withLock { $0.append("\(error)") }
      }
    }
    try scene.presenting("d/file", meanwhile: saving) { presenter in
      box.set(presenter)
      let reading = try scene.ask(.reading, "d/file")
      #expect(inner.withLock { $0 } == ["saved"])
      reading.finish(published: [:])
      try scene.shell("mv d/file d/last")
      try scene.wait(presenter, for: "moved:last")
      #expect(presenter.heard == ["reader", "save", "moved:last"])
    }
  }

  @Test("it is not notified of its own coordinator's publication, but of others' changes")
  func ownChanges() throws {
    try scene.presenting("d/file") { own in
      try scene.presenting("d/file") { other in
        for round in 0..<10 {
          let writing = try scene.ask(.content, "d/file", by: own)
          let status = try scene.publish("own \(round)", "d/file")
          writing.finish(published: [ItemPath(scene.path("d/file")): status])
          try scene.wait(other, for: "changed")
          other.forget()
        }
        #expect(own.heard.isEmpty)
        let writing = try scene.ask(.content, "d/file", by: own)
        let status = try scene.publish("own", "d/file")
        try scene.shell("echo others > d/file")
        writing.finish(published: [ItemPath(scene.path("d/file")): status])
        try scene.wait(own, for: "changed")
      }
    }
  }

  @Test("it is not notified of its own deletion, its own new files, or its own move")
  func ownDeletion() throws {
    try scene.presenting("d") { own in
      let deleting = try scene.ask(.deleting, "d/file", by: own)
      try scene.shell("rm d/file")
      deleting.finish(published: [ItemPath(scene.path("d/file")): nil])
      let writing = try scene.ask(.content, "d/new", by: own)
      let status = try scene.publish("new", "d/new")
      writing.finish(published: [ItemPath(scene.path("d/new")): status])
      let moving = try scene.ask(.moving, "d/new", by: own)
      try scene.shell("mv d/new d/newer")
      PresenterConversation.reportMove(
        from: scene.path("d/new"), to: scene.path("d/newer"), by: own)
      moving.finish(published: [:])
      try scene.shell("mv d dd")
      try scene.wait(own, for: "moved:dd")
      #expect(own.heard == ["moved:dd"])
    }
  }

  @Test("a coordinated move is reported once: to presenters of the item, its contents, its parents")
  func move() throws {
    try scene.presenting("d") { item in
      try scene.presenting("d/file") { inside in
        try scene.presenting("") { above in
          let moving = try scene.ask(.moving, "d")
          try scene.shell("mv d e")
          PresenterConversation.reportMove(
            from: scene.path("d"), to: scene.path("e"), by: nil)
          moving.finish(published: [:])
          try scene.shell("echo > e/after; echo more > e/file")
          try scene.wait(item, for: "appeared:after")
          try scene.wait(inside, for: "changed")
          try scene.wait(above, for: "appeared:after")
          for (presenter, line) in [
            (item, "moved:e"), (inside, "moved:file"), (above, "moved:d:e"),
          ] {
            #expect(presenter.heard.filter { $0.hasPrefix("moved:") } == [line])
          }
        }
      }
    }
  }

  @Test("one without an item is asked for it after its own access")
  func laterItem() throws {
    let presenter = RecordingPresenter(nil)
    try RegisteredPresenter.add(presenter)
    defer { RegisteredPresenter.remove(presenter) }
    let writing = try scene.ask(.replacing, "created", by: presenter)
    let status = try scene.publish("new", "created")
    presenter.move(to: scene.path("created"))
    writing.finish(published: [ItemPath(scene.path("created")): status])
    try scene.shell("echo others > created")
    try scene.wait(presenter, for: "changed")
    try scene.ask(.content, "created").finish(published: [:])
    #expect(presenter.heard.contains("writer"))
  }

  @Test("links on the way to an item lead to it")
  func links() throws {
    try scene.shell("ln -s d link; ln -s ../link/file d/other; ln -s other d/another")
    for name in ["link/file", "d/another", "d/../link/./file"] {
      try scene.presenting(name) { presenter in
        try scene.ask(.content, "d/file").finish(published: [:])
        #expect(presenter.heard == ["writer"])
        try scene.shell("echo others >> link/file")
        try scene.wait(presenter, for: "changed")
      }
    }
  }

  @Test("nothing is created by a request where there are no presenters")
  func nothingMade() throws {
    let before = scene.directory.listing
    let conversation = try scene.ask(.deleting, "d")
    conversation.finish(published: [:])
    #expect(scene.directory.listing == before)
  }
}

/// A holder of a presenter for its own callbacks.
private final class PresenterBox: Sendable {
  private let box = Mutex<RecordingPresenter?>(nil)
  var presenter: RecordingPresenter? { box.withLock { $0 } }
  func set(_ presenter: RecordingPresenter) { box.withLock { $0 = presenter } }
}

/// A presenter that records whether two callbacks were ever under way at once.
private final class ConcurrentPresenter: FilePresenter {
  let presentedItemQueue = DispatchQueue(label: "concurrent", attributes: .concurrent)
  let presentedItemURL: URL?
  let next = Mutex<@Sendable (Int) -> Void>({ _ in })
  private let state = Mutex((running: 0, heard: [String](), overlapped: false))

  init(_ path: String) { presentedItemURL = URL(filePath: path) }

  var heard: [String] { state.withLock { $0.heard } }
  var hasOverlapped: Bool { state.withLock { $0.overlapped } }

  func presentedSubitemDidAppear(at url: URL) {
    state.withLock { state in
      state.running += 1
      state.heard.append(url.lastPathComponent)
      if state.running > 1 { state.overlapped = true }
    }
    next.withLock { $0 }(heard.count)
    // Another thread would begin the next one meanwhile.
    pauseThread(.milliseconds(2))
    state.withLock { $0.running -= 1 }
  }
}

/// A presenter that leaves the answer to a writer to the test, and counts how often it has its item
/// back.
private final class HoldingPresenter: FilePresenter {
  let presentedItemQueue = DispatchQueue(label: "holding-presenter")
  let presentedItemURL: URL? = nil
  private let hold: @Sendable (@escaping @Sendable () -> Void) -> Void
  private let returns = Mutex(0)

  init(_ hold: @escaping @Sendable (@escaping @Sendable () -> Void) -> Void) { self.hold = hold }

  var count: Int { returns.withLock { $0 } }

  func relinquishPresentedItem(
    toWriter writer: @escaping @Sendable ((@Sendable () -> Void)?) -> Void
  ) {
    hold { writer { self.returns.withLock { $0 += 1 } } }
  }
}
