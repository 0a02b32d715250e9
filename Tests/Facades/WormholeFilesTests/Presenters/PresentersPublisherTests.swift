import Dispatch
import FoundationEssentials
import Synchronization
import Testing
import Wormhole
import WormholeFiles
import WormholeSystem
import WormholeTestSupport
import WormholeToolkit

/// A presenter that wants to know who changed its item.
private final class CuriousPresenter: FilePresenter {
  let presentedItemURL: URL?
  let presentedItemQueue = DispatchQueue(label: "curious-presenter")
  private let publishers = Mutex<[Int32?]>([])

  init(_ path: String) { presentedItemURL = URL(filePath: path) }

  /// The process of each notice.
  var heard: [Int32?] { publishers.withLock { $0 } }

  func presentedItemDidChange(by publisher: Publisher?) {
    publishers.withLock { $0.append(publisher?.processID) }
  }
}

@Suite("A presenter's notice", .blocking)
struct PresentersPublisherTests {
  let directory: TemporaryDirectory

  init() throws {
    directory = try TemporaryDirectory()
    // Presenters register in it, and not in the user's own.
    _ = try directory.container()
  }

  @Test("names the process that published the file, and nobody after a foreign change")
  func publisher() throws {
    let path = directory.path + "/seats"
    try directory.shell("echo 1 >'\(path)'")
    let presenter = CuriousPresenter(path)
    try FileCoordinator.addFilePresenter(presenter)
    defer { FileCoordinator.removeFilePresenter(presenter) }
    let other = try Participant(directory.path)
    #expect(try other.ask("writing \(path) put=2") == "done")
    try eventually("the publisher is reported") { presenter.heard.last == other.processID }
    let publisher = try #require(FileCoordinator.publisher(ofItemAt: URL(filePath: path)))
    #expect(publisher.program == "participant" && publisher.processID == other.processID)
    // A copy is not what was published, and neither is a file that was written again.
    try directory.shell("cp -a '\(path)' '\(path)2'")
    #expect(FileCoordinator.publisher(ofItemAt: URL(filePath: path + "2")) == nil)
    try directory.shell("echo foreign >'\(path)'")
    try eventually("no publisher is reported") { presenter.heard.last == .some(nil) }
    let third = try Participant(directory.path)
    #expect(try third.ask("writing \(path) put=3") == "done")
    try eventually("the next publisher is reported") { presenter.heard.last == third.processID }
    #expect(FileCoordinator.publisher(ofItemAt: URL(filePath: directory.path)) == nil)
  }

  @Test("about something in a directory names its publisher, too")
  func subitem() throws {
    try directory.shell("mkdir '\(directory.path)/d'; echo 1 >'\(directory.path)/d/seats'")
    let presenter = CuriousPresenter(directory.path + "/d")
    try FileCoordinator.addFilePresenter(presenter)
    defer { FileCoordinator.removeFilePresenter(presenter) }
    let other = try Participant(directory.path)
    #expect(try other.ask("writing \(directory.path)/d/seats put=2") == "done")
    try eventually("the publisher is reported") { presenter.heard.contains(other.processID) }
  }
}
