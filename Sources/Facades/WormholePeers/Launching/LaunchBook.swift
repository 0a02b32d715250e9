import Wormhole
import WormholePropertyLists

/// The value with a peer's `LaunchState`, and the places of its starts beside it.
struct LaunchBook: Sendable {
  private let value: Value

  init(_ peer: String, _ container: SharedContainer) {
    value = container.own.value(PeerNames.launching(peer))
  }

  func read() throws -> LaunchState { LaunchState(try Self.content(value.snapshot())) }

  /// Changes the state in one step.
  ///
  /// - Parameter body: leaves the state unchanged to write nothing. May run more than once.
  func change<Result: Sendable>(
    until deadline: ContinuousClock.Instant? = nil,
    _ body: @escaping @Sendable (inout LaunchState) -> Result
  ) throws -> Result {
    try value.edit(.init(until: deadline)) { snapshot in
      let old = LaunchState(try Self.content(snapshot))
      var new = old
      let result = body(&new)
      return (new == old ? .keep : .replace(try new.propertyList.binaryBytes()), result)
    }
  }

  func newPlace() throws -> StartPlace { try StartPlace.make(at: value) }

  /// - Returns: nil for an invalid nonce.
  func place(of start: LaunchState.Start) -> StartPlace? {
    StartPlace(noted: start.nonce, at: value)
  }

  // A loss of power can damage it, which must not prevent all later starts: then no earlier
  // process is left, and the count is lost.
  private static func content(_ snapshot: ValueSnapshot) throws -> PropertyListValue? {
    do {
      return try snapshot.propertyList(limits: PeerLaunch.limits)
    } catch let error as AppGroupError where error.code == .damaged {
      return nil
    }
  }
}
