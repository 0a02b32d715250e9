import Testing
import WormholeTestSupport

@testable import WormholeFiles

@Suite("The requests to each presenter", .blocking)
struct PresentersConcernTests {
  static let rows:
    [(AccessKind, item: [PresenterStep], above: [PresenterStep], inside: [PresenterStep])] =
      [
        (.reading, [.relinquishToReader, .save], [], []),
        (.readingWithoutChanges, [.relinquishToReader], [], []),
        (.sharing, [.relinquishToReader, .save], [], []),
        (.locking, [.relinquishToWriter], [], []),
        (.content, [.relinquishToWriter], [], []),
        (.metadata, [.relinquishToWriter], [], []),
        (.merging, [.save, .relinquishToWriter], [], []),
        (.moving, [.relinquishToWriter], [], [.relinquishToWriter]),
        (
          .deleting, [.relinquishToWriter, .accommodateDeletion],
          [.accommodateSubitemDeletion(ItemPath("/a/b"))],
          [.relinquishToWriter, .accommodateDeletion]
        ),
        (
          .replacing, [.relinquishToWriter, .accommodateDeletion],
          [.accommodateSubitemDeletion(ItemPath("/a/b"))],
          [.relinquishToWriter, .accommodateDeletion]
        ),
      ]

  @Test("concern those of the item, its parent directories, and its contents", arguments: rows)
  func table(
    _ kind: AccessKind, item: [PresenterStep], above: [PresenterStep],
    inside: [PresenterStep]
  ) {
    let demand = PresenterDemand(path: ItemPath("/a/b"), kind: kind)
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

  @Test("treat paths that are equal to Swift but not to the kernel as different items")
  func bytes() {
    let demand = PresenterDemand(path: ItemPath("/\u{E9}"), kind: .content)
    let item = ItemPath("/e\u{301}")
    #expect(PresenterStep.steps(for: [demand], ofPresenterAt: item, answering: .all).isEmpty)
  }

  @Test("make each callback once for two demands of one access")
  func twice() {
    let demands = [
      PresenterDemand(path: ItemPath("/a"), kind: .reading),
      PresenterDemand(path: ItemPath("/a"), kind: .readingWithoutChanges),
      PresenterDemand(path: ItemPath("/a"), kind: .content),
    ]
    let steps = PresenterStep.steps(for: demands, ofPresenterAt: ItemPath("/a"), answering: .all)
    #expect(steps == [.relinquishToReader, .save, .relinquishToWriter])
  }
}
