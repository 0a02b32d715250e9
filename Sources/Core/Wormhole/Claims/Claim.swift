public import FoundationEssentials
import WormholePropertyLists
import WormholeSystem

/// A name that one holder has until a given time: a lock across many short commands, none of which
/// has to stay alive.
///
/// A holder is a text, so all commands with that text are one holder, whichever process runs them.
/// A lock that one process holds while it runs is a `Presence`, or for a file `wormhole lock`.
///
/// The claim ends at its time, by `release(as:)`, or with a process that was named. It does not
/// protect anything by itself: others respect it by asking for it, and a change with its fence is
/// refused, even after a long pause, if another holder has had the claim since.
///
/// ```swift
/// let build = container.claim("build")
/// let fence = try await build.acquire(as: "agent 7", for: .seconds(1800))
/// try await container.value("state").update(while: fence) { $0 = "building" }
/// try await build.release(as: "agent 7")
/// ```
public struct Claim: Sendable {
  /// The holder of a claim.
  ///
  /// ```swift
  /// if let holder = try await container.claim("build").holder() {
  ///   print(holder.who, "has it until", holder.until)
  /// }
  /// ```
  public struct Holder: Sendable, Hashable, Encodable {
    /// The text that names it.
    public let who: String
    /// When it got the claim.
    public let since: Date
    /// When the claim ends, unless it is renewed.
    public let until: Date
    /// The process with which the claim ends, in its own namespace; nil without one.
    public let processID: Int32?
    /// See `Fence.number`.
    public let fence: UInt64

    private enum CodingKeys: String, CodingKey {
      case who, since, until, fence
      case processID = "process"
    }
  }

  /// The container that the name belongs to.
  public let container: SharedContainer
  /// The name.
  public let name: String

  /// How long a claim lasts by default: 30 minutes.
  public static let standardTime: Duration = .seconds(1_800)

  private static let prefix = "claim/"
  fileprivate var value: PlainValue { container.own.value(Self.prefix + name) }
  private static let action = "get the claim"

  init(_ name: String, in container: SharedContainer) {
    self.name = name
    self.container = container
  }

  /// Gets the claim for a holder, or renews it: then it keeps its fence.
  ///
  /// - Parameters:
  ///   - who: The holder: any text that is not empty.
  ///   - time: How long it lasts from now, by the time of day; on etcd by etcd's own clock.
  ///   - process: A process on this machine: when it ends, the claim ends at once. Without one, a
  ///     new claim ends only at its time, and a renewed one as before.
  ///   - deadline: How long to wait for another holder; by default not at all.
  /// - Returns: The fence, for changes that only the holder may make.
  /// - Throws: `WormholeError.Code.timedOut`, whose reason names the holder; `.unsupportedValue`
  ///   for a process that does not run, an empty text, or a time that is not positive; or an error
  ///   of the file system.
  /// - Complexity: One update of a value, and a read.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  @discardableResult
  public func acquire(
    as who: String, for time: Duration = Claim.standardTime, whileRunning process: Int32? = nil,
    until deadline: ContinuousClock.Instant? = nil
  ) throws -> Fence {
    try ClaimRequest(self, who, time, owner(process), until: deadline ?? .now).run()
  }

  /// Gets or renews the claim; see the form without `async`.
  @discardableResult
  public func acquire(
    as who: String, for time: Duration = Claim.standardTime, whileRunning process: Int32? = nil,
    until deadline: ContinuousClock.Instant? = nil
  ) async throws -> Fence {
    let owner = try owner(process)
    return try await runSuspending {
      ClaimRequest(self, who, time, owner, until: deadline ?? .now)
    }
  }

  /// Gives the claim up, if a holder has it.
  ///
  /// - Returns: False if it did not have it.
  /// - Throws: As `acquire`.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  @discardableResult
  public func release(as who: String) throws -> Bool {
    try value.edit(releaseTerms) { try decideRelease($0, who) }
  }

  /// Gives the claim up; see the form without `async`.
  @discardableResult
  public func release(as who: String) async throws -> Bool {
    try await value.edit(releaseTerms) { try decideRelease($0, who) }
  }

  /// Returns the current holder; nil if there is none.
  ///
  /// - Throws: `WormholeError` for a claim that cannot be read.
  /// - Complexity: Reads one value, and looks for the process that it names.
  public func holder() throws -> Holder? {
    let snapshot = try value.snapshot()
    return try record(in: snapshot).flatMap { $0.hasEnded ? nil : holder($0, snapshot) }
  }

  /// Returns the current holder; see the form without `async`.
  public func holder() async throws -> Holder? { try await Blocking.run { try holder() } }

  /// Returns the fence of a claim by its number.
  ///
  /// - Parameter number: The `Fence.number` of its holder.
  public func fence(_ number: UInt64) -> Fence {
    let lost = WormholeError(
      .leaseLost, "change anything while the claim \"\(name)\" is held", path: value.path,
      reason: "it has ended, or another holder has it; nothing of the change is visible",
      remedy: "get the claim again, and repeat the change")
    return Fence(value.store.proof(of: number, lost: lost), number)
  }

  /// The number of the last holder is kept for a day: the time of day may be set back.
  private var releaseTerms: ChangeTerms { .init(expiresAfter: .seconds(86_400)) }

  private func decideRelease(_ snapshot: PlainSnapshot, _ who: String) throws -> (Edit, Bool) {
    guard let record = try record(in: snapshot), record.isOf(who), !record.hasEnded else {
      return (.keep, false)
    }
    guard let next = value.store.nextFence(after: snapshot) else { return (.remove, true) }
    let content: PropertyListValue = [RoleProof.key: PropertyListValue(next)]
    return (.replace(try content.binaryBytes()), true)
  }

  private func owner(_ process: Int32?) throws -> ProcessIdentity? {
    guard let process else { return nil }
    if let status = ProcessStatus.of(process), !status.isDead { return status.identity }
    throw absence(of: process)
  }

  private func absence(of process: Int32) -> WormholeError {
    WormholeError(
      .unsupportedValue, Self.action, path: value.path, reason: "no process \(process) runs here",
      remedy: "name a process that lasts as long as the claim should, such as a shell ($$)")
  }

  // MARK: The record

  /// What the value of a claim contains; its time is the value's.
  fileprivate struct Record {
    let who: String
    let since: Date
    let owner: ProcessIdentity?
    /// Nil on etcd until the claim is renewed: then it is the revision.
    let fence: UInt64?

    var hasEnded: Bool { owner?.hasEnded ?? false }

    func isOf(_ who: String) -> Bool { self.who.utf8.elementsEqual(who.utf8) }

    var content: PropertyListValue {
      var content: PropertyListValue = ["who": .string(who), "since": .date(since)]
      content[RoleProof.key] = fence.map { PropertyListValue($0) }
      guard let owner else { return content }
      content["process"] = .integer(Int64(owner.processID))
      content["start"] = PropertyListValue(owner.startTicks)
      content["namespace"] = PropertyListValue(owner.namespace)
      return content
    }
  }

  /// Returns the record of a claim that has not reached its time; nil without one.
  private func record(in snapshot: PlainSnapshot) throws -> Record? {
    let content: PropertyListValue?
    do {
      content = try snapshot.propertyList()
    } catch let error as WormholeError where error.code == .damaged {
      // No holder can have the claim through it.
      return nil
    }
    guard let content, let who = content["who"]?.stringValue,
      let since = content["since"]?.dateValue
    else { return nil }
    var owner: ProcessIdentity?
    if let process = content["process"]?.int64Value.flatMap({ Int32(exactly: $0) }),
      let start = content["start"]?.uint64Value, let namespace = content["namespace"]?.uint64Value
    {
      owner = ProcessIdentity(processID: process, startTicks: start, namespace: namespace)
    }
    return Record(
      who: who, since: since, owner: owner, fence: content[RoleProof.key]?.uint64Value)
  }

  private func holder(_ record: Record, _ snapshot: PlainSnapshot) -> Holder {
    Holder(
      who: record.who, since: record.since, until: snapshot.expiration ?? .distantFuture,
      processID: record.owner?.processID, fence: record.fence ?? snapshot.version?.revision ?? 0)
  }

  // MARK: Getting it

  fileprivate enum Attempt {
    case refused(Holder)
    /// The number is nil on etcd for a new claim.
    case made(fence: UInt64?)
  }

  /// Gets the claim, unless another holder has it.
  fileprivate func tryAcquire(
    as who: String, for time: Duration, _ owner: ProcessIdentity?,
    until deadline: ContinuousClock.Instant
  ) throws -> Attempt {
    // Other processes hold the value's lease only briefly.
    let terms = ChangeTerms(
      until: max(deadline, .now + SharedContainer.standardTerm), expiresAfter: time)
    return try value.edit(terms) { snapshot in
      let old = try record(in: snapshot).flatMap { $0.hasEnded ? nil : $0 }
      if let old, !old.isOf(who) { return (.keep, .refused(holder(old, snapshot))) }
      let fence =
        old.map { holder($0, snapshot).fence } ?? value.store.nextFence(after: snapshot)
      let new = Record(
        who: who, since: old?.since ?? .now, owner: owner ?? old?.owner, fence: fence)
      return (.replace(try new.content.binaryBytes()), .made(fence: fence))
    }
  }

  /// Returns the fence of a claim that was just made; nil if it has already ended.
  fileprivate func fence(as who: String) throws -> Fence? {
    let snapshot = try value.snapshot()
    return try record(in: snapshot).flatMap {
      $0.isOf(who) ? fence(holder($0, snapshot).fence) : nil
    }
  }

  fileprivate func refusal(_ other: Holder) -> WormholeError {
    let process = other.processID.map { ", as long as process \($0) runs" } ?? ""
    let times = [other.since, other.until].map { $0.formatted(.iso8601) }
    return WormholeError(
      .timedOut, Self.action, path: value.path,
      reason: "\"\(other.who)\" has had it since \(times[0]), until \(times[1])\(process)",
      remedy: "try again then, or ask its holder to release it")
  }

  fileprivate func check(_ who: String, _ time: Duration, _ owner: ProcessIdentity?) throws {
    if let owner, owner.hasEnded { throw absence(of: owner.processID) }
    guard who.isEmpty || time <= .zero else { return }
    throw WormholeError(
      .unsupportedValue, Self.action, path: value.path,
      reason: who.isEmpty ? "the text for its holder is empty" : "its time is over at once",
      remedy: who.isEmpty ? "name who holds it" : "name a time that is longer than 0")
  }

  fileprivate var ended: WormholeError {
    WormholeError(
      .leaseLost, Self.action, path: value.path,
      reason:
        "it ended before its number was read: its time is too short, or another process released it",
      remedy: "repeat it with a longer time")
  }

  /// Calls a closure when the claim may have changed.
  fileprivate func follow(_ signal: @escaping @Sendable () -> Void) throws -> (any Cancelling)? {
    try value.store.follow(leading: nil, signal)
  }
}

/// The wait for a claim.
private final class ClaimRequest: Waiting {
  private let claim: Claim
  private let who: String
  private let time: Duration
  private let owner: ProcessIdentity?
  private let deadline: ContinuousClock.Instant
  private let latch = WakeLatch()
  private var following: (any Cancelling)?

  /// The end of a process causes no event at the claim.
  private static let interval: Duration = .milliseconds(500)

  init(
    _ claim: Claim, _ who: String, _ time: Duration, _ owner: ProcessIdentity?,
    until deadline: ContinuousClock.Instant
  ) {
    self.claim = claim
    self.who = who
    self.time = time
    self.owner = owner
    self.deadline = deadline
  }

  deinit { following?.cancel() }

  func step() throws -> WaitingStep<Fence> {
    try claim.check(who, time, owner)
    let other: Claim.Holder
    switch try claim.tryAcquire(as: who, for: time, owner, until: deadline) {
    case .made(let fence?): return .done(claim.fence(fence))
    case .made(nil):
      guard let fence = try claim.fence(as: who) else { throw claim.ended }
      return .done(fence)
    case .refused(let holder): other = holder
    }
    let now = ContinuousClock.now
    guard now < deadline else { throw claim.refusal(other) }
    if following == nil {
      following = try claim.follow { [latch] in latch.raise() }
      return .again
    }
    let end = Duration.seconds(max(0, other.until.timeIntervalSinceNow))
    return .wait(for: latch, until: min(deadline, now + min(end, Self.interval)))
  }
}

extension SharedContainer {
  /// Returns the claim with a name; no file is touched before it is used.
  ///
  /// - Parameter name: Any string, byte for byte.
  public func claim(_ name: String) -> Claim { Claim(name, in: self) }

  /// Returns the claims that have a holder, in the order of the bytes of their names.
  ///
  /// A claim that cannot be read is reported as an event, see `Diagnostics`, and left out.
  ///
  /// - Throws: `WormholeError` for an error of the file system.
  /// - Complexity: Lists the package's own values, and reads each claim.
  public func claims() throws -> [(claim: Claim, holder: Claim.Holder)] {
    try Diagnostics.reportingFaults { try claims(&$0) }
  }

  /// Returns the same; a claim that cannot be read is a fault.
  package func claims(
    _ faults: inout NameFaults
  ) throws -> [(claim: Claim, holder: Claim.Holder)] {
    try own.valueIdentifiers().compactMap(Claim.name(ofOwnValue:))
      .sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
      .compactMap { name in
        let claim = claim(name)
        let holder = try faults.attempt("read the claim", path: claim.value.path) {
          try claim.holder()
        }
        return (holder ?? nil).map { (claim, $0) }
      }
  }
}

extension Claim {
  /// Whether a property list is what a claim's value contains: its holder, or the number that the last
  /// one left.
  package static func isRecord(_ content: PropertyListValue) -> Bool {
    content["who"]?.stringValue != nil
      || content["who"] == nil && content[RoleProof.key]?.uint64Value != nil
  }

  /// Returns the name of the claim that an own value stores; nil for any other value.
  package static func name(ofOwnValue identifier: String) -> String? {
    identifier.hasPrefix(prefix) ? String(identifier.dropFirst(prefix.count)) : nil
  }
}
