import TestScopes
import Testing

@testable import FileCoordination

@Suite("Which presenters are asked what", .blocking)
struct PresentersConcernTests {
  static let rows:
    [(PresenterDemand.Kind, item: [PresenterStep], above: [PresenterStep], inside: [PresenterStep])] =
      [
        (.reading(savesChanges: true), [.relinquishToReader, .save], [], []),
        (.reading(savesChanges: false), [.relinquishToReader], [], []),
        (.writing(.content), [.relinquishToWriter], [], []),
        (.writing(.metadata), [.relinquishToWriter], [], []),
        (.writing(.merging), [.save, .relinquishToWriter], [], []),
        (.writing(.moving), [.relinquishToWriter], [], [.relinquishToWriter]),
        (
          .writing(.deleting), [.relinquishToWriter, .accommodateDeletion],
          [.accommodateSubitemDeletion(ItemPath("/a/b"))],
          [.relinquishToWriter, .accommodateDeletion]
        ),
        (
          .writing(.replacing), [.relinquishToWriter, .accommodateDeletion],
          [.accommodateSubitemDeletion(ItemPath("/a/b"))],
          [.relinquishToWriter, .accommodateDeletion]
        ),
      ]

  @Test("the item's own, those of directories above, those of what it contains", arguments: rows)
  func table(
    _ kind: PresenterDemand.Kind, item: [PresenterStep], above: [PresenterStep],
    inside: [PresenterStep]
  ) {
    let demand = PresenterDemand(path: "/a/b", kind: kind)
    func steps(_ path: String) -> [PresenterStep] {
      PresenterStep.steps(for: [demand], ofPresenterAt: ItemPath(path), answering: .all)
    }
    #expect(steps("/a/b") == item)
    #expect(steps("/a") == above)
    #expect(steps("/") == above)
    #expect(steps("/a/b/c/d") == inside)
    #expect(steps("/a/bc").isEmpty)
    #expect(steps("/a/c").isEmpty)
  }

  @Test("a path that Swift calls equal and the kernel does not is another item")
  func bytes() {
    let demand = PresenterDemand(path: "/\u{E9}", kind: .writing(.content))
    let item = ItemPath("/e\u{301}")
    #expect(PresenterStep.steps(for: [demand], ofPresenterAt: item, answering: .all).isEmpty)
  }

  @Test("of two demands of one access each callback is made once")
  func twice() {
    let demands = [
      PresenterDemand(path: "/a", kind: .reading(savesChanges: true)),
      PresenterDemand(path: "/a", kind: .reading(savesChanges: false)),
      PresenterDemand(path: "/a", kind: .writing(.content)),
    ]
    let steps = PresenterStep.steps(for: demands, ofPresenterAt: ItemPath("/a"), answering: .all)
    #expect(steps == [.relinquishToReader, .save, .relinquishToWriter])
  }
}
