internal import Dispatch
internal import Foundation

/// A token for one observer, to end it with `unobserve`.
///
/// ```swift
/// let observation = GuaranteedMessage.observe { print($0) }
/// GuaranteedMessage.unobserve(observation)
/// ```
public struct Observation: Hashable, Sendable {
  let uuid = UUID()
  let queue: DispatchQueue

  public static func == (left: Self, right: Self) -> Bool { left.uuid == right.uuid }

  public func hash(into hasher: inout Hasher) { hasher.combine(uuid) }
}
