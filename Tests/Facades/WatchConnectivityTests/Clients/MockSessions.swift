// Stand-ins as apps write them for Apple's framework, and the code that is tested with them. Each says
// `@unchecked Sendable`, because the compiler warns of a subclass that does not, and warnings are errors here.
import WatchConnectivity

/// The code under test: it knows the framework's classes only.
public class StepsSender {
  private let session: WCSession
  public private(set) var log: [String] = []

  public init(session: WCSession) {
    self.session = session
    session.activate()
  }

  public func send(_ steps: Int) {
    guard session.activationState == .activated, session.isPaired, session.isWatchAppInstalled
    else {
      log.append("not ready")
      return
    }
    if session.isReachable {
      session.sendMessage(
        ["steps": steps],
        replyHandler: { [weak self] reply in self?.log.append("reply \(reply["got"] ?? "none")") },
        errorHandler: { [weak self] error in self?.log.append("error \(error)") })
      session.sendMessage(["steps": steps], replyHandler: nil)
      session.sendMessageData(
        Data([UInt8(steps)]),
        replyHandler: { [weak self] in
          self?.log.append("data \($0.count)")
        })
    } else {
      let transfer = session.transferUserInfo(["steps": steps])
      log.append("queued \(transfer.isTransferring) \(transfer.userInfo["steps"] ?? "none")")
    }
    do {
      try session.updateApplicationContext(["steps": steps])
    } catch {
      log.append("no context")
    }
    let sent = session.transferFile(URL(fileURLWithPath: "/tmp/steps"), metadata: ["n": steps])
    log.append("file \(sent.file.fileURL.lastPathComponent) \(sent.progress.totalUnitCount)")
    if session.hasContentPending || !session.outstandingFileTransfers.isEmpty {
      session.outstandingFileTransfers.first?.cancel()
    }
  }

  public func receive(_ file: WCSessionFile) {
    log.append("got \(file.fileURL.lastPathComponent) \(file.metadata?["n"] ?? "none")")
  }
}

/// Counts, and answers at once.
public class CountingSession: WCSession, @unchecked Sendable {
  public var activateCalled = false
  public var sentMessages: [[String: Any]] = []
  public var transferredUserInfo: [[String: Any]] = []

  public override func activate() {
    activateCalled = true
  }

  public override var activationState: WCSessionActivationState { return .activated }
  public override var isPaired: Bool { return true }
  public override var isWatchAppInstalled: Bool { return true }
  public override var isReachable: Bool { return true }

  public override func sendMessage(
    _ message: [String: Any],
    replyHandler: (([String: Any]) -> Void)?,
    errorHandler: ((Error) -> Void)? = nil
  ) {
    sentMessages.append(message)
    replyHandler?(["got": message["steps"] ?? 0])
  }

  public override func sendMessageData(
    _ data: Data, replyHandler: ((Data) -> Void)?, errorHandler: ((Error) -> Void)?
  ) {
    replyHandler?(Data())
  }

  public override func transferUserInfo(_ userInfo: [String: Any]) -> WCSessionUserInfoTransfer {
    transferredUserInfo.append(userInfo)
    return WCSessionUserInfoTransfer()
  }

  public override func updateApplicationContext(_ applicationContext: [String: Any]) throws {}

  public override func transferFile(
    _ file: URL, metadata: [String: Any]?
  ) -> WCSessionFileTransfer {
    return FakeFileTransfer(FakeFile(url: file, metadata: metadata))
  }
}

/// Is in the state that its test sets, with an initializer of its own.
public final class StateSession: WCSession, @unchecked Sendable {
  private let reachable: Bool
  public var mockActivationState: WCSessionActivationState = .notActivated
  public var sentContexts: [[String: Any]] = []
  private weak var mockDelegate: WCSessionDelegate?

  public init(reachable: Bool) {
    self.reachable = reachable
    super.init()
  }

  public override class func isSupported() -> Bool { return true }
  public override var delegate: WCSessionDelegate? {
    get { return mockDelegate }
    set { mockDelegate = newValue }
  }
  public override var activationState: WCSessionActivationState { return mockActivationState }
  public override var isPaired: Bool { return true }
  public override var isWatchAppInstalled: Bool { return true }
  public override var isCompanionAppInstalled: Bool { return true }
  public override var isComplicationEnabled: Bool { return true }
  public override var remainingComplicationUserInfoTransfers: Int { return 50 }
  public override var isReachable: Bool { return reachable }
  public override var hasContentPending: Bool { return true }
  public override var applicationContext: [String: Any] { return sentContexts.last ?? [:] }
  public override var receivedApplicationContext: [String: Any] { return [:] }
  public override var outstandingFileTransfers: [WCSessionFileTransfer] { return [transfer] }
  public let transfer = FakeFileTransfer(FakeFile(url: URL(fileURLWithPath: "/x"), metadata: nil))

  public override func activate() {
    mockActivationState = .activated
    delegate?.session(self, activationDidCompleteWith: .activated, error: nil)
  }

  public override func updateApplicationContext(_ applicationContext: [String: Any]) throws {
    sentContexts.append(applicationContext)
  }

  public override func transferUserInfo(
    _ userInfo: [String: Any] = [:]
  ) -> WCSessionUserInfoTransfer {
    return FakeUserInfoTransfer(userInfo)
  }

  public override func transferFile(
    _ file: URL, metadata: [String: Any]?
  ) -> WCSessionFileTransfer {
    return transfer
  }
}

/// Overrides one property only, and has all others from the framework.
public class ReachableSession: WCSession, @unchecked Sendable {
  public override var isReachable: Bool { return true }
}

/// A received file.
public class FakeFile: WCSessionFile, @unchecked Sendable {
  private let _url: URL
  private let _metadata: [String: Any]?

  public init(url: URL, metadata: [String: Any]?) {
    _url = url
    _metadata = metadata
    super.init()
  }

  public override var fileURL: URL { return _url }
  public override var metadata: [String: Any]? { return _metadata }
}

/// A file on its way.
public class FakeFileTransfer: WCSessionFileTransfer, @unchecked Sendable {
  private let _file: WCSessionFile
  private let _progress = Progress(totalUnitCount: 7)
  public private(set) var isCancelledByTest = false

  public init(_ file: WCSessionFile) {
    _file = file
    super.init()
  }

  public override var file: WCSessionFile { return _file }
  public override var progress: Progress { return _progress }
  public override var isTransferring: Bool { return !isCancelledByTest }
  public override func cancel() { isCancelledByTest = true }
}

/// A dictionary on its way.
public class FakeUserInfoTransfer: WCSessionUserInfoTransfer, @unchecked Sendable {
  private let _userInfo: [String: Any]

  public init(_ userInfo: [String: Any]) {
    _userInfo = userInfo
    super.init()
  }

  public override var userInfo: [String: Any] { return _userInfo }
  public override var isTransferring: Bool { return true }
  public override var isCurrentComplicationInfo: Bool { return false }
}
