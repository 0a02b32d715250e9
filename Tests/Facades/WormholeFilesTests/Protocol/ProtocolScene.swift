import FoundationEssentials
import Synchronization
import Testing
import Wormhole
import WormholeSystem
import WormholeTestSupport

@testable import WormholeFiles

/// Accesses of several owners in one process, one step at a time.
struct ProtocolScene {
  let directory: TemporaryDirectory

  init() throws {
    directory = try TemporaryDirectory()
  }

  func url(_ name: String) -> URL { URL(filePath: directory.path + "/" + name) }

  func write(_ text: String, _ name: String) throws {
    try Data(text.utf8).write(to: url(name))
  }

  func text(_ name: String) throws -> String { try String(contentsOf: url(name), encoding: .utf8) }

  func makeDirectory(_ name: String) throws {
    try FileManager.default.createDirectory(at: url(name), withIntermediateDirectories: false)
  }

  /// Returns the entries of a directory, without the sites that this process keeps for a moment.
  func names(_ name: String = "") throws -> [String] {
    KeptSites.shared.removeAll()
    return try directory.names(name)
  }

  func location(_ name: String) throws -> ItemPath {
    try ItemPath.find(directory.path + "/" + name, followingLink: false).place
  }

  /// Returns the acquisition of an item by a new owner.
  func acquisition(
    _ name: String, _ kind: AccessKind, until deadline: ContinuousClock.Instant = .now
  ) throws -> ItemAcquisition {
    ItemAcquisition(
      try location(name), kind,
      under: AccessTerms(purpose: Nonce.next(), term: .seconds(60), until: deadline))
  }

  /// Takes steps, with their short pauses, until one waits for other processes or is the last.
  func step<Work: Waiting>(_ work: Work) throws -> WaitingStep<Work.Outcome> {
    while true {
      let step = try work.step()
      guard case .spin = step else { return step }
      _ = step.block()
    }
  }

  func isWaiting(_ acquisition: ItemAcquisition) throws -> Bool {
    if case .wait = try step(acquisition) { true } else { false }
  }

  /// Runs a closure, and another one just before its system call of the given number.
  ///
  /// - Parameter isWarm: Whether it may use a site that this process has kept. Otherwise it takes the same
  ///   calls each time.
  /// - Returns: Whether there was such a call.
  func run(
    interruptedAt number: Int, isWarm: Bool = false, by other: @escaping @Sendable () -> Void,
    _ body: () throws -> Void
  ) rethrows -> Bool {
    if !isWarm { KeptSites.shared.removeAll() }
    let hasRun = Mutex(false)
    let plan = Faults.Plan.acting(before: number) {
      hasRun.withLock { $0 = true }
      other()
    }
    try Faults.$plan.withValue(plan, operation: body)
    return hasRun.withLock { $0 }
  }

  /// Expects that a repeated piece of work takes a number of calls at least once. Other tests make
  /// directories above the scene's meanwhile, and then it takes more.
  ///
  /// - Parameter work: Returns the number of its calls, or nil if it does not count.
  func expectLeast(
    _ calls: Int, sourceLocation: SourceLocation = #_sourceLocation, _ work: () throws -> Int?
  ) throws {
    var least = Int.max
    let end = soon
    while least > calls, ContinuousClock.now < end { least = min(least, try work() ?? .max) }
    #expect(least == calls, sourceLocation: sourceLocation)
  }
}

extension DirectoriesAbove {
  /// Looks at the directories above an item, as an access does.
  ///
  /// - Returns: Whether the next access need not look, unless something happens.
  static func isRemembered(_ item: ItemPath) -> Bool {
    _ = watched(item)
    return current(item) != nil
  }
}
