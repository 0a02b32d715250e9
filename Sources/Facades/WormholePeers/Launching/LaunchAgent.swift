import Dispatch
public import Wormhole
import WormholePropertyLists
import WormholeSystem

extension PeerLaunch {
  /// Starts peers on this machine when processes of other machines need them: for a container on etcd.
  ///
  /// A registration is kept on its machine, and followed there by each process that needs the peer. A
  /// process of another machine asks the agent, which follows the registration in its place: with its
  /// occasions and its budget. What it runs comes from this machine's registration only.
  ///
  /// ```swift
  /// try PeerLaunch.Registry(in: container).set(PeerLaunch(program: "/usr/local/bin/phone"), for: "phone")
  /// let agent = try PeerLaunch.Agent(for: ["phone"], in: container) { print($0) }
  /// // ... as long as the machine serves the peer
  /// agent.close()
  /// ```
  public final class Agent: Sendable {
    private let parts: [Part]

    private struct Part {
      let registration: PresenceRegistration
      let observation: ObservationToken
    }

    /// The longest wait for a program that was started to be active.
    private static let patience: Duration = .seconds(30)

    /// Begins to start peers; work that waits for one already starts it at once.
    ///
    /// - Parameters:
    ///   - peers: The names of registered peers. A registration that is changed later is followed, but
    ///     its occasions count from the next agent on.
    ///   - container: A container on etcd.
    ///   - onFailure: Gets each failure, on a queue where it may block. The process that needs the peer
    ///     gets it, too.
    /// - Throws: `PeerError`: `notLaunched` for a peer that is not registered here, and in a directory,
    ///   where each process starts peers itself; or an error of the container.
    /// - Complexity: on etcd two requests for each peer, and one for each start.
    public init(
      for peers: [String], in container: SharedContainer,
      onFailure: @escaping @Sendable (PeerError) -> Void
    ) throws {
      var parts: [Part] = []
      for peer in peers {
        let action = "start \"\(peer)\" for other machines"
        parts.append(
          try betweenPeers(action, peer) {
            try Self.begin(peer, container, action, onFailure)
          })
      }
      self.parts = parts
    }

    deinit { close() }

    /// Ends it; programs that it has started go on.
    public func close() {
      for part in parts {
        part.observation.cancel()
        part.registration.close()
      }
    }

    private static func begin(
      _ peer: String, _ container: SharedContainer, _ action: String,
      _ onFailure: @escaping @Sendable (PeerError) -> Void
    ) throws -> Part {
      @Sendable func refusal(_ reason: String, _ remedy: String) -> PeerError {
        PeerError(.notLaunched, action, peer: peer, reason: reason, remedy: remedy)
      }
      guard !container.isLocal else {
        throw refusal(
          "its container is a directory, in which each process starts a registered peer itself",
          "register it, which is enough")
      }
      guard let launch = try PeerLaunch.trusted(of: peer, in: container, action) else {
        throw refusal("it is not registered on this machine", "register it here")
      }
      @Sendable func start(for occasion: Occasions, _ wish: LaunchWish?) {
        do throws(PeerError) {
          let isRegistered = try Launcher.launchHere(
            peer, for: occasion, in: container, until: .now + Self.patience)
          guard isRegistered else {
            throw refusal(
              "its registration was removed, or is for other occasions now", "register it again")
          }
        } catch {
          onFailure(error)
          // If this fails, the process that waits gets an error at its deadline.
          try? wish?.note(error.failure.reason, of: peer, in: container)
        }
      }
      let observation = try container.own.value(PeerNames.wish(peer))
        .observe(on: Blocking.queue()) { snapshot in
          // Another program may have written the value; then no process waits for an answer.
          guard let wish = try? LaunchWish(snapshot.propertyList(limits: PeerLaunch.limits)),
            wish.failure == nil
          else { return }
          start(for: wish.occasion, wish)
        }
      let registration = try container.own.presence(PeerNames.agent(peer)).enter(
        content: ["occasions": .array(launch.occasions.propertyList)])
      let waits = try [PeerNames.messages(peer), PeerNames.files(peer)].contains {
        let queue = container.own.queue($0)
        // A process that receives already gets them.
        return try queue.hasEntries() && queue.role.members().isEmpty
      }
      if waits, launch.occasions.include(.queuedWork) {
        Blocking.queue().async { start(for: .queuedWork, nil) }
      }
      return Part(registration: registration, observation: observation)
    }
  }
}
