import Dispatch
import Foundation
import Synchronization
public import WatchConnectivity
public import Wormhole
import WormholePeers
import WormholePropertyLists
import WormholeSystem

/// The other side of a session under test, in the test's own process: it does what its script says.
///
/// It is an ordinary peer, so a session cannot distinguish it from a process: it is reachable from
/// `arrive()` until `leave()` or `die()`, gets messages, dictionaries, contexts and files, and can
/// send them. Each message takes the next step of the script; the last step stays in force.
///
/// ```swift
/// let watch = scene.counterpart(.watch, script: [.answer(["verified": true]), .dies])
/// try await watch.arrive()
/// ```
///
/// No part of it looks at a clock: a slow counterpart waits for a `Gate`, a deaf one forever.
public final class Counterpart: Sendable {
  /// Its side.
  public let role: WCSession.Role
  /// Its name among the peers: "phone", or the watch's name.
  public let name: String
  /// While it is closed, arriving dictionaries and files wait as if the app hangs: they are not
  /// acknowledged. It is initially open.
  public let transfers = Gate(isOpen: true)

  /// The name of the side under test.
  let other: String
  let container: SharedContainer
  let arrivals = Arrivals<Received>()
  /// Handles all arrivals, in order.
  private let queue = DispatchQueue(label: "ConnectivityTesting.counterpart")
  private let state: Mutex<State>

  private struct State {
    var script: [Step]
    var life: Life?
    /// The messages of a deaf counterpart, which are never released.
    var ignored: [PeerRequest] = []
  }

  /// One stay, from an arrival to its end.
  private struct Life {
    let peer: PeerSession
    var messages: PeerReceiver<PeerMessage>?
    var files: PeerReceiver<PeerFile>?
    var context: ObservationToken?
    var tasks: [Task<Void, Never>] = []
  }

  /// Makes a counterpart, which is not present before `arrive()`.
  ///
  /// - Parameters:
  ///   - role: its side; the session under test has the other one.
  ///   - watchName: the watch's name, whichever side the counterpart is.
  ///   - container: the container of the session under test.
  ///   - script: how it handles messages, one step for each; by default it replies `[:]`.
  public init(
    _ role: WCSession.Role, watchName: String = "watch", in container: SharedContainer,
    script: [Step] = []
  ) {
    self.role = role
    self.container = container
    name = role == .phone ? Pairing.phone : watchName
    other = role == .phone ? watchName : Pairing.phone
    state = Mutex(State(script: script))
  }

  deinit { leave() }

  /// Whether it is present.
  public var isPresent: Bool { state.withLock { $0.life }?.peer.isActive ?? false }

  /// Replaces the remaining steps.
  public func follow(_ script: [Step]) { state.withLock { $0.script = script } }

  // MARK: Its life

  /// Becomes reachable, and takes waiting deliveries. Does nothing if it is present or arriving.
  ///
  /// - Parameter deadline: when to stop waiting for another process of its name; by default 10 s.
  /// - Throws: `WormholeError.Code.replaced` if another process is that side.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  public func arrive(until deadline: ContinuousClock.Instant? = nil) throws {
    guard let peer = try begin() else { return }
    do {
      try peer.activate(until: deadline)
      let messages = try peer.receiveMessages(until: deadline)
      let files = try peer.receiveFiles(until: deadline)
      try receive(messages, files, for: peer)
    } catch {
      // Otherwise it has left or died meanwhile, as it should.
      if leave(only: peer) { throw error }
    }
  }

  /// Becomes reachable; see the form without `async`.
  public func arrive(until deadline: ContinuousClock.Instant? = nil) async throws {
    guard let peer = try begin() else { return }
    do {
      try await peer.activate(until: deadline)
      let messages = try await peer.receiveMessages(until: deadline)
      let files = try await peer.receiveFiles(until: deadline)
      try await Blocking.run { try self.receive(messages, files, for: peer) }
    } catch {
      // Otherwise it has left or died meanwhile, as it should.
      if leave(only: peer) { throw error }
    }
  }

  /// Leaves like a program that ends in order. Unacknowledged deliveries wait for its next arrival.
  public func leave() { leave(only: nil) }

  /// - Returns: Whether it was there.
  @discardableResult
  private func leave(only peer: PeerSession?) -> Bool {
    end(only: peer) { life in
      life.messages?.close()
      life.files?.close()
      life.peer.close()
    }
  }

  /// Dies as if by SIGKILL: others find its presence and its mailbox unlocked, as if a process had
  /// ended without leaving. Messages that wait for its reply end as `notReachable`.
  public func die() {
    end { life in
      life.peer.abandon()
      life.messages?.abandon()
      life.files?.abandon()
    }
  }

  /// Begins a stay, before it is reachable: its first message may end it.
  ///
  /// - Returns: its peer; nil if another stay has begun.
  private func begin() throws -> PeerSession? {
    let peer = try PeerSession(name, in: container)
    handleRequests(of: peer)
    return state.withLock { state in
      guard state.life == nil else { return nil }
      state.life = Life(peer: peer)
      return peer
    }
  }

  /// Takes deliveries from now on, unless the stay has ended.
  private func receive(
    _ messages: PeerReceiver<PeerMessage>, _ files: PeerReceiver<PeerFile>, for peer: PeerSession
  ) throws {
    let context = try peer.observeContext(from: other, on: queue) { [weak self] context in
      guard case .success(let value) = context else { return }
      self?.arrivals.add(Received(.context, value))
    }
    let transfers = transfers
    let isStaying = state.withLock { state in
      guard state.life?.peer === peer else { return false }
      var life = Life(peer: peer, messages: messages, files: files, context: context)
      life.tasks = [
        Self.take(messages, gate: transfers) { [weak self] message in
          self?.arrivals.add(Received(.userInfo, message.value))
        },
        Self.take(files, gate: transfers) { [weak self] file in
          let content = try Data(contentsOf: file.url)
          self?.arrivals.add(
            Received(.file, file.metadata ?? [:], file: (name: file.name, content: content)))
        },
      ]
      state.life = life
      return true
    }
    guard !isStaying else { return }
    context.cancel()
    messages.close()
    files.close()
  }

  private static func take<Delivered: PeerDelivery>(
    _ receiver: PeerReceiver<Delivered>, gate: Gate,
    _ note: @escaping @Sendable (Delivered) throws -> Void
  ) -> Task<Void, Never> {
    Task {
      do {
        while !Task.isCancelled {
          guard let delivered = try await receiver.next(until: .now + .seconds(3_600)) else {
            continue
          }
          await gate.pass()
          // It may have left or died while it waited at the gate.
          guard !Task.isCancelled else { return }
          try await Blocking.run {
            try note(delivered)
            try delivered.acknowledge()
          }
        }
      } catch {
        // Closed, which ends it; a transfer taken before is delivered again.
        guard !Task.isCancelled else { return }
        Diagnostics.report(error)
      }
    }
  }

  /// - Parameter peer: the peer of the stay to end; nil for any.
  /// - Returns: Whether there was one.
  @discardableResult
  private func end(only peer: PeerSession? = nil, _ end: (Life) -> Void) -> Bool {
    let (life, ignored) = state.withLock { state -> (Life?, [PeerRequest]) in
      guard peer == nil || state.life?.peer === peer else { return (nil, []) }
      defer { (state.life, state.ignored) = (nil, []) }
      return (state.life, state.ignored)
    }
    guard let life else { return false }
    for task in life.tasks { task.cancel() }
    life.context?.cancel()
    end(life)
    life.peer.refuseRequests()
    // Released now that no answer to them can be sent.
    _ = ignored
    return true
  }

  // MARK: Messages

  private func handleRequests(of peer: PeerSession) {
    peer.handleRequests(on: queue) { [weak self] request in self?.handle(request) }
  }

  private func handle(_ request: PeerRequest) {
    let received = Received(request)
    let step = state.withLock { state in
      state.script.count > 1 ? state.script.removeFirst() : state.script.first ?? .answer()
    }
    switch step.action {
    case .answer(let reply, let gate):
      let answer: @Sendable () -> Void = {
        // After an error, its sender has stopped waiting, or is gone.
        Diagnostics.reporting { try request.reply(reply(received)) }
      }
      // Noted first: a test that opens the gate when it sees the message opens it for this one.
      arrivals.add(received)
      return gate.map { $0.pass(answer) } ?? answer()
    case .refuse:
      Diagnostics.reporting { try request.refuse("the counterpart has no method for it") }
    case .letGo: break
    case .ignore: state.withLock { $0.ignored.append(request) }
    case .die: die()
    }
    arrivals.add(received)
  }

  /// The peer that sends; an absent one also sends, as long as no other peer has to reach it.
  func peer() throws -> PeerSession {
    if let life = state.withLock({ $0.life }) { return life.peer }
    return try PeerSession(name, in: container)
  }
}

extension TestScene {
  /// Makes a counterpart in the scene; see `Counterpart`.
  public func counterpart(
    _ role: WCSession.Role, watchName: String = "watch", script: [Counterpart.Step] = []
  ) -> Counterpart {
    let counterpart = Counterpart(role, watchName: watchName, in: container, script: script)
    content.withLock { $0.counterparts.append(counterpart) }
    return counterpart
  }
}
