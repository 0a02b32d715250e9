import Foundation
import Wormhole
import WormholePeers
import WormholePropertyLists

/// The number of complication transfers that a watch still gets today, and the current one.
///
/// A `Value` of the container for each watch: `{day: 20777, used: 3, current: "…"}`, with the day
/// counted from 1970 in UTC. A clock set back to the day before gives no new transfers; one that
/// was further in the future takes none away.
struct ComplicationTransfers: Sendable {
  static let perDay = 50
  private static let secondsPerDay = 86_400.0

  private let value: PlainValue

  init(_ container: SharedContainer, watch: String) {
    value = container.own.value(PeerNames.complication(watch))
  }

  func remaining() throws -> Int {
    let state = try value.read()
    return Self.perDay - Self.used(state, today: Self.today())
  }

  /// The id of the last transfer sent for the complication.
  func currentID() throws -> String? { try value.read()?["current"]?.stringValue }

  /// Uses one of today's transfers, if any is left.
  ///
  /// - Returns: whether there was one.
  func use() throws -> Bool {
    let today = Self.today()
    return try value.update { state in
      let used = Self.used(state, today: today)
      guard used < Self.perDay else { return false }
      let current = state?["current"]
      state = [
        "day": .integer(Self.day(state, today: today) ?? today), "used": .integer(Int64(used + 1)),
      ]
      state?["current"] = current
      return true
    }
  }

  /// Gives back a transfer that was not sent.
  func giveBack() throws {
    try value.update { state in
      guard let used = state?["used"]?.int64Value, used > 0 else { return }
      state?["used"] = .integer(used - 1)
    }
  }

  /// Makes a transfer the current one; the previous one is still delivered.
  func setCurrent(_ id: String) throws {
    try value.update { $0?["current"] = .string(id) }
  }

  /// The stored day, if it still counts; nil for another one.
  private static func day(_ state: PropertyListValue?, today: Int64) -> Int64? {
    state?["day"]?.int64Value.flatMap { (today...today + 1).contains($0) ? $0 : nil }
  }

  private static func used(_ state: PropertyListValue?, today: Int64) -> Int {
    guard day(state, today: today) != nil else { return 0 }
    // Other programs may have written anything there.
    return min(max(Int(state?["used"]?.int64Value ?? 0), 0), perDay)
  }

  private static func today() -> Int64 {
    Int64((Date().timeIntervalSince1970 / secondsPerDay).rounded(.down))
  }
}

extension SessionLink {
  /// For the phone's active watch; nil on a watch.
  var complications: ComplicationTransfers? {
    guard setup.role == .phone, let counterpart else { return nil }
    return ComplicationTransfers(setup.container, watch: counterpart)
  }
}
