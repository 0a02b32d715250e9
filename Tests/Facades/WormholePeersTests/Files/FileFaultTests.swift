import FoundationEssentials
import Synchronization
import Testing
import Wormhole
import WormholeSystem
import WormholeTestSupport
import WormholeToolkit

@testable import WormholePeers

/// The sender's outcome, the receiver's file, and the place of the file agree, whatever failed.
///
/// With EVERY_STEP each call fails once, even in a retry, and each call of an undo is the last one;
/// otherwise some of them, from a start that differs in each run.
@Suite("A file between peers, whichever call fails,", .blocking)
struct FileFaultTests {
  enum Way: CaseIterable, Sendable {
    case copied, moved
    /// From another file system.
    case movedByCopying

    static let allCases: [Way] =
      [.copied, .moved] + (TemporaryDirectory.elsewhere == nil ? [] : [.movedByCopying])
  }

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
    let elsewhere: TemporaryDirectory?
    let url: URL
    let transfer: PeerFileTransfer
    let way: Way
    private var isMoved: Bool { way != .copied }
    /// The calls that failed after the entry was stored, which has a receipt: another name of it.
    private let failed = Mutex<[SystemCall]>([])
    private let isStored = Atomic(false)

    init(_ way: Way) throws {
      self.way = way
      scene = try FileScene()
      elsewhere =
        way == .movedByCopying
        ? try TemporaryDirectory(under: TemporaryDirectory.elsewhere) : nil
      let path = elsewhere.map { $0.path + "/f" } ?? scene.path("f")
      try FileDescriptor.open(path, [.writeOnly, .create]).writeAll(content)
      url = URL(filePath: path)
      transfer = try scene.sender.intendTransfer(
        fileAt: url, to: "watch", options: .init(isMoved: way != .copied))
    }

    /// Sends it on this thread; one call may fail.
    ///
    /// - Returns: The number of its calls, and whether it should be tried again.
    func send(
      failing step: Int, _ error: Errno = .tooManyOpenFiles
    ) throws -> (calls: Int, isUnfinished: Bool) {
      let plan = Faults.Plan { call, index in
        // A descriptor is closed even if close reports an error.
        guard index == step, call != .close else {
          if call == .linkat { self.isStored.store(true, ordering: .relaxed) }
          return .proceed
        }
        // Without a descriptor the removal is tried again.
        let isRepeated = error == .tooManyOpenFiles && call != .fstatat
        if self.isStored.load(ordering: .relaxed), !isRepeated {
          self.failed.withLock { $0.append(call) }
        }
        return .fail(error)
      }
      do {
        try Faults.$plan.withValue(plan) { try scene.sender.sendOutgoingFiles() }
        return (plan.calls, false)
      } catch {
        return (plan.calls, true)
      }
    }

    /// The calls by which a source is removed.
    private static let removing: Set<SystemCall> = [.openat, .fstat, .flock, .fstatat, .unlinkat]

    /// Completes all remaining work, and then asks the receiver.
    ///
    /// - Parameter isElsewhere: Whether another process has sent it.
    func check(
      _ when: String, isElsewhere: Bool = false, _ sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
      try scene.sender.sendOutgoingFiles()
      let received = try scene.receiveAll().map(\.content)
      func comment() -> Comment { "\(when): \(scene.directory.listing)" }
      let source = try scene.read(url)
      switch try transfer.status() {
      case .processed:
        #expect(received == [content], comment(), sourceLocation: sourceLocation)
        // A stored copy stays stored even if the source cannot be removed; then the source stays.
        // Another process cannot report which of its calls failed.
        let wasRemoval = failed.withLock { $0.contains { Self.removing.contains($0) } }
        let mayStay = way == .movedByCopying && (wasRemoval || isElsewhere)
        #expect(
          (source == nil) == isMoved || mayStay && source == content, comment(),
          sourceLocation: sourceLocation)
      case .failed(let reason):
        #expect(received.isEmpty, comment(), sourceLocation: sourceLocation)
        let place = reason.components(separatedBy: "; it is ").last ?? ""
        let kept = try source ?? scene.read(place)
        #expect(kept == content, "\(reason), \(comment())", sourceLocation: sourceLocation)
      case let other:
        Issue.record("it is \(other), \(comment())", sourceLocation: sourceLocation)
      }
    }
  }

  /// Returns the number of calls of becoming the sender, which have their own tests.
  private func entering() throws -> Int {
    let scene = try FileScene()
    let answer = try scene.participant().ask("calls queue-consume peer/phone/outgoing")
    return try #require(Int(answer)) - 4
  }

  @Test(
    "is delivered exactly once, or has failed and is in its place", arguments: Way.allCases,
    [Errno.tooManyOpenFiles, .noSpace, .inputOutput])
  func oneCall(way: Way, error: Errno) throws {
    let stride = Self.stride(18)
    var step = try entering() + Self.first(stride)
    while true {
      let attempt = try Attempt(way)
      let calls = try attempt.send(failing: step, error).calls
      try attempt.check("call \(step) failed for \(error)")
      guard step < calls else { break }
      step += stride
    }
  }

  @Test(
    "is delivered exactly once, or is in its place, if a call of the next attempt also fails",
    arguments: Way.allCases)
  func retries(way: Way) throws {
    let stride = Self.stride(29)
    let first = try entering() + Self.first(stride)
    var step = first
    while true {
      var second = first
      var mustGoOn = true
      while true {
        let attempt = try Attempt(way)
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
    "is delivered exactly once, or is in its place, if its sender is killed after a failed call",
    arguments: Way.allCases)
  func undoing(way: Way) throws {
    let stride = Self.stride(37)
    var step = try entering() + Self.first(stride)
    while true {
      var after = 1 + Self.first(stride)
      var isFailing = true
      while true {
        let attempt = try Attempt(way)
        let victim = try attempt.scene.participant()
        try victim.tell("fall \(step) \(after) file-copy phone")
        do {
          isFailing = try victim.answer().hasPrefix("fell")
          try attempt.check("call \(step) failed", isElsewhere: true)
          break
        } catch is Participant.Failure {
          #expect(try victim.wait() == .killed(signal: 9))
        }
        try attempt.check(
          "call \(step) failed, killed before call \(after) after it", isElsewhere: true)
        after += stride
      }
      guard isFailing else { break }
      step += stride
    }
  }
}
