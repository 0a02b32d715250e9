import FoundationEssentials
import Synchronization
import Testing
import Wormhole
import WormholeSystem
import WormholeTestSupport
import WormholeToolkit

@testable import WormholePeers

/// The sender's outcome and the receiver's file agree, whatever failed, and nothing else is left.
///
/// With EVERY_STEP each call fails once, even in a retry, and each call of an undo is the last one;
/// otherwise some of them, from a start that differs in each run.
@Suite("A file between peers, whichever call fails,", .blocking)
struct FileFaultTests {
  private static let seed = TestSeed.next("FILE_FAULTS_FROM").value
  private static let content = FileScene.content(30_000)

  private static func stride(_ stride: Int) -> Int { TriedSteps.isThorough ? 1 : stride }

  /// Returns the first of the tried steps.
  private static func first(_ stride: Int) -> Int {
    TriedSteps.isThorough ? 0 : Int(seed % UInt64(stride))
  }

  /// One transfer, from its intention to its end.
  private final class Attempt: Sendable {
    let scene: FileScene
    let url: URL
    let transfer: PeerFileTransfer

    init() throws {
      scene = try FileScene()
      url = try scene.write(content, "f")
      transfer = try scene.sender.intendTransfer(fileAt: url, to: "watch")
    }

    /// Sends it on this thread; one call may fail.
    ///
    /// - Returns: The number of its calls, and whether it should be tried again.
    func send(
      failing step: Int, _ error: Errno = .tooManyOpenFiles
    ) throws -> (calls: Int, isUnfinished: Bool) {
      let plan = Faults.Plan { call, index in
        // A descriptor is closed even if close reports an error.
        index == step && call != .close ? .fail(error) : .proceed
      }
      do {
        try Faults.$plan.withValue(plan) { try scene.sender.sendOutgoingFiles() }
        return (plan.calls, false)
      } catch {
        return (plan.calls, true)
      }
    }

    /// Completes all remaining work, and then asks the receiver.
    func check(_ when: String, _ sourceLocation: SourceLocation = #_sourceLocation) throws {
      try scene.sender.sendOutgoingFiles()
      let received = try scene.receiveAll().map(\.content)
      func comment() -> Comment { "\(when): \(scene.directory.listing)" }
      switch try transfer.status() {
      case .processed:
        #expect(received == [content], comment(), sourceLocation: sourceLocation)
      case .failed(let reason):
        #expect(received.isEmpty, "\(reason), \(comment())", sourceLocation: sourceLocation)
      case let other:
        Issue.record("it is \(other), \(comment())", sourceLocation: sourceLocation)
      }
      #expect(try scene.read(url) == content, comment(), sourceLocation: sourceLocation)
      #expect(try scene.leftovers().isEmpty, comment(), sourceLocation: sourceLocation)
    }
  }

  /// Returns the number of calls of becoming the sender, which have their own tests.
  private func entering() throws -> Int {
    let scene = try FileScene()
    let answer = try scene.participant().ask("calls queue-consume peer/phone/outgoing")
    return try #require(Int(answer)) - 4
  }

  @Test(
    "is delivered exactly once, or has failed and leaves nothing",
    arguments: [Errno.tooManyOpenFiles, .noSpace, .inputOutput])
  func oneCall(error: Errno) throws {
    let stride = Self.stride(9)
    var step = try entering() + Self.first(stride)
    while true {
      let attempt = try Attempt()
      let calls = try attempt.send(failing: step, error).calls
      try attempt.check("call \(step) failed for \(error)")
      guard step < calls else { break }
      step += stride
    }
  }

  @Test("is delivered exactly once, whichever file could not be opened for lack of descriptors")
  func fewDescriptors() throws {
    var place = 0
    var isFailing = true
    while isFailing {
      let attempt = try Attempt()
      let opened = Mutex(0)
      let plan = Faults.Plan { [place] call, _ in
        guard call == .openat || call == .openat2 else { return .proceed }
        return opened.withLock { opened in
          defer { opened += 1 }
          return opened == place ? .fail(.tooManyOpenFiles) : .proceed
        }
      }
      do {
        try Faults.$plan.withValue(plan) { try attempt.scene.sender.sendOutgoingFiles() }
      } catch {
        #expect((error as? WormholeError)?.code == .tooManyOpenFiles, "file \(place): \(error)")
      }
      try attempt.check("file \(place) was not opened")
      #expect(try attempt.transfer.status() == .processed, "file \(place)")
      isFailing = opened.withLock { $0 > place }
      place += 1
    }
    #expect(place > 1)
  }

  @Test(
    "is delivered exactly once, or leaves nothing, if a call of the next attempt also fails")
  func retries() throws {
    let stride = Self.stride(19)
    let first = try entering() + Self.first(stride)
    var step = first
    while true {
      var second = first
      var mustGoOn = true
      while true {
        let attempt = try Attempt()
        let (calls, isUnfinished) = try attempt.send(failing: step)
        mustGoOn = step < calls
        guard isUnfinished else { break }
        let more = try attempt.send(failing: second).calls
        try attempt.check("call \(step) failed, and \(second) of the next attempt")
        guard second < more else { break }
        second += stride
      }
      guard mustGoOn else { break }
      step += stride
    }
  }

  @Test(
    "is delivered exactly once, or leaves nothing, if its sender is killed after a failed call")
  func undoing() throws {
    let stride = Self.stride(23)
    var step = try entering() + Self.first(stride)
    while true {
      var after = 1 + Self.first(stride)
      var isFailing = true
      while true {
        let attempt = try Attempt()
        let victim = try attempt.scene.participant()
        try victim.tell("fall \(step) \(after) file-copy phone")
        do {
          isFailing = try victim.answer().hasPrefix("fell")
          try attempt.check("call \(step) failed")
          break
        } catch is Participant.Failure {
          #expect(try victim.wait() == .killed(signal: 9))
        }
        try attempt.check("call \(step) failed, killed before call \(after) after it")
        after += stride
      }
      guard isFailing else { break }
      step += stride
    }
  }
}
