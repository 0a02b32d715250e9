import Dispatch
import Synchronization
import Wormhole
import WormholePeers
import WormholePropertyLists
import WormholeSystem

/// The verbs of a participant about events and measurements.
///
/// ```
/// events begin           collects all from now on
/// events none            nobody receives any; answers how often a message was composed for nobody
/// events flood COUNT     reports COUNT errors
/// events block           the handler blocks from now on, until "events release"
/// events reenter KEY     the handler sets a value, and is then nobody's handler any more
/// events peer NAME PEER  observes the reachability of a peer
/// events KIND            the number of the events of a kind so far, and the level and the fields of the last
/// measured KIND [WHAT]   the number of the measurements, and the dimensions of the last, "timed" if it
///                        has a duration
/// ```
enum DiagnosticsVerbs {
  private struct Kept {
    var events: [Diagnostics.Event] = []
    var measurements: [Diagnostics.Measurement] = []
    var observations: [(PeerSession, ObservationToken)] = []
  }

  private struct Mistake: Error {}

  private static let kept = Mutex(Kept())
  private static let isBlocked = Atomic(false)
  private static let released = DispatchSemaphore(value: 0)

  /// Prints errors as the programs do, unless the environment says that nobody is to receive them.
  static func begin() {
    guard Program.environment("PARTICIPANT_WITHOUT_HANDLER") == nil else { return }
    Diagnostics.onEvent = { event in
      // With standard error closed, nobody reads it.
      if event.kind == .failure { try? Program.write("wormhole: \(event.message)\n", to: 2) }
    }
  }

  /// What was reported before an answer is printed before it.
  static func finish() {
    if !isBlocked.load(ordering: .relaxed) { Diagnostics.flush(until: .now + .seconds(5)) }
  }

  static func perform(
    _ verb: String, _ key: String, _ rest: [String], _ container: SharedContainer
  ) throws -> String {
    finish()
    if verb == "measured" { return measured("wormhole." + key, of: rest.first) }
    switch key {
    case "begin":
      Diagnostics.onEvent = { event in kept.withLock { $0.events.append(event) } }
      Diagnostics.onMeasurement = { sample in kept.withLock { $0.measurements.append(sample) } }
    case "none":
      Diagnostics.onEvent = nil
      Diagnostics.onMeasurement = nil
      var count = 0
      func message() -> String {
        count += 1
        return ""
      }
      Diagnostics.note(.wait, at: .debug, message(), fields: ["a": message()])
      return "\(count)"
    case "flood":
      for _ in 0..<(Int(rest[0]) ?? 0) { Diagnostics.report(Mistake()) }
    case "block":
      isBlocked.store(true, ordering: .relaxed)
      Diagnostics.onEvent = { event in
        if isBlocked.load(ordering: .relaxed) { released.wait() }
        kept.withLock { $0.events.append(event) }
      }
    case "release":
      isBlocked.store(false, ordering: .relaxed)
      released.signal()
    case "reenter":
      let value = container.value(rest[0])
      Diagnostics.onEvent = { event in
        Diagnostics.report(Mistake())
        // The test sees that it is missing.
        try? value.replace(with: .string(event.kind.rawValue))
        Diagnostics.onEvent = nil
      }
    case "peer":
      let session = try PeerSession(rest[0], in: container)
      let token = try session.observeReachability(
        of: rest[1], on: DispatchQueue(label: "reachability")
      ) { _ in }
      kept.withLock { $0.observations.append((session, token)) }
    default: return events(key)
    }
    return "done"
  }

  private static func events(_ kind: String) -> String {
    let all = kept.withLock { $0.events }.filter { $0.kind.rawValue == kind }
    guard let last = all.last else { return "0" }
    return "\(all.count) \(last.level.rawValue) " + text(last.fields)
  }

  /// - Parameter what: what the measurements are of; nil for all.
  private static func measured(_ name: String, of what: String?) -> String {
    let all = kept.withLock { $0.measurements }.filter {
      $0.name == name && (what == nil || $0.dimensions["what"] == what)
    }
    guard let last = all.last else { return "0" }
    return "\(all.count) " + text(last.dimensions) + (last.duration == nil ? "" : " timed")
  }

  private static func text(_ fields: [String: String]) -> String {
    fields.sorted { $0.key < $1.key }.map { "\($0)=\($1)" }.joined(separator: " ")
  }
}
