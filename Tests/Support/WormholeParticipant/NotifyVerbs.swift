import WormholeNotifyClients

/// The verbs of a participant as programs written for notify(3) and the Darwin center; a WORD is a
/// registration. Calls answer with their status.
///
/// ```
/// notify-post NAME                posts; "-" is no name
/// notify-check WORD NAME          registers for checks; so do dispatch, signal and descriptor
/// notify-signal WORD NAME NUMBER
/// notify-descriptor WORD NAME [WORD] the last one: whose descriptor is used again
/// notify-posted WORD              checks: 1 or 0
/// notify-state WORD               the state; notify-set WORD NUMBER sets it
/// notify-suspend WORD             so do resume and cancel
/// notify-read WORD                the word whose token comes out of the descriptor; "closed"
/// notify-heard -                  the words of the calls, in their order
/// notify-signals -                how many signals arrived
/// notify-numbers -                see `Beacon.numbers`; so does notify-refusals
/// notify-center VERB [NAME]       observe, post and stop with the center; without a name: lights, or
///                                 everything
/// notify-center heard COUNT       serves the main queue until so many were called; answers the names
/// ```
@MainActor
enum NotifyVerbs {
  static func perform(_ verb: Substring, _ key: String, _ rest: [String]) -> String {
    let beacon = Beacon.shared
    let name = rest.first ?? ""
    switch verb {
    case "post": return "\(beacon.post(key == "-" ? nil : key))"
    case "check": return "\(beacon.check(key, name))"
    case "dispatch": return "\(beacon.dispatch(key, name))"
    case "signal": return "\(beacon.registerSignal(key, name, rest.last.flatMap(Int32.init) ?? 0))"
    case "descriptor": return "\(beacon.descriptor(key, name, of: rest.dropFirst().first))"
    case "posted": return beacon.isPosted(key)
    case "state": return beacon.state(key)
    case "set": return "\(beacon.set(key, UInt64(name) ?? 0))"
    case "suspend": return "\(beacon.suspend(key))"
    case "resume": return "\(beacon.resume(key))"
    case "cancel": return "\(beacon.cancel(key))"
    case "read": return beacon.readToken(key)
    case "heard": return beacon.heard
    case "signals": return "\(beacon.signals)"
    case "numbers": return beacon.numbers
    case "refusals": return beacon.refusals
    case "center": return center(key, rest.first)
    default: return "error usage"
    }
  }

  private static func center(_ verb: String, _ name: String?) -> String {
    let lights = HallLights.shared
    switch verb {
    case "observe": name.map { lights.observe($0) } ?? lights.observeLights()
    case "post": name.map { lights.post($0) } ?? lights.postLights()
    case "stop": name.map { lights.stop($0) } ?? lights.stopEverything()
    case "heard":
      let count = name.flatMap(Int.init) ?? 0
      WormholeVerbs.serve { lights.heard.count >= count }
      return lights.heard.joined(separator: " ")
    default: return "error usage"
    }
    return "done"
  }
}
