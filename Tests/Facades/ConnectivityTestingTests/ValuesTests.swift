import ConnectivityTesting
import Foundation
import Testing
import WatchConnectivity
import WormholeTestSupport

@Suite("A session's values, as a test makes them,", .blocking)
struct ValuesTests {
  @Test("have the content that a delegate reads, and numbers of every type")
  func content() {
    let file = WCSessionFile.making(URL(filePath: "/tmp/code.png"), metadata: ["id": 7])
    #expect(file.fileURL.lastPathComponent == "code.png" && file.metadata?["id"] as? Int == 7)
    #expect(WCSessionFile.making(URL(filePath: "/a")).metadata == nil)
    let info = WCSessionUserInfoTransfer.making(["gain": 3])
    #expect(info.userInfo["gain"] as? Double == 3 && info.userInfo["gain"] as? UInt8 == 3)
    #expect(!info.isCurrentComplicationInfo && !info.isTransferring)
    #expect(
      WCSessionUserInfoTransfer.making(isCurrentComplicationInfo: true).isCurrentComplicationInfo)
    // What no session carries reaches a delegate under test all the same.
    #expect(WCSessionUserInfoTransfer.making(["any": Files.self]).userInfo["any"] != nil)
  }

  private enum Files {}

  @Test("are under way or not, and can be cancelled while they are")
  func transferring() throws {
    let info = WCSessionUserInfoTransfer.making(isTransferring: true)
    #expect(info.isTransferring)
    info.cancel()
    #expect(!info.isTransferring && info.isCancelled)
    let file = WCSessionFileTransfer.making(
      URL(filePath: "/tmp/film"), metadata: ["id": 7], isTransferring: true)
    #expect(file.progress.fractionCompleted == 0 && file.file.metadata?["id"] as? Int == 7)
    file.progress.cancel()
    // Foundation calls the handler on a thread of its own.
    try eventually("it is cancelled") { file.isCancelled }
    #expect(!file.isTransferring)
    let done = WCSessionFileTransfer.making(URL(filePath: "/tmp/film"))
    #expect(done.progress.fractionCompleted == 1 && !done.isTransferring)
    done.cancel()
    #expect(!done.isCancelled)
  }

  @Test("are equal only to themselves")
  func equality() {
    let (one, other) = (WCSessionUserInfoTransfer.making(), WCSessionUserInfoTransfer.making())
    #expect(one == one && one != other)
    #expect(WCSessionFileTransfer.making(URL(filePath: "/a")) != .making(URL(filePath: "/a")))
  }
}
