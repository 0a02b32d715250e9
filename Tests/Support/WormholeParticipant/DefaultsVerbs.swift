import GroupDefaults
import Wormhole
import WormholePropertyLists
import WormholeSystem

/// The verbs of a participant about the container's defaults; each begins with "defaults-".
///
/// ```
/// defaults-get KEY                 the value's description, or "nil"
/// defaults-set KEY NUMBER          sets
/// defaults-remove KEY              removes
/// defaults-fill PREFIX COUNT       sets COUNT keys, PREFIX0 and so on, one after the other
/// defaults-add KEY NUMBER          updates: adds to the number
/// defaults-hold KEY NUMBER         updates; in the middle answers "holding" and reads a line before
///                                  it adds the number
/// defaults-group GROUP             sets "k" of the group's defaults to 7; answers its value and path
/// defaults-tally NAME COUNT        COUNT times: adds 1 to "total" and to NAME in one update
/// ```
struct DefaultsVerbs {
  private let defaults: GroupDefaults

  init(_ container: SharedContainer) {
    defaults = GroupDefaults(in: container)
  }

  func perform(_ verb: Substring, _ key: String, _ number: Int64) throws -> String {
    switch verb {
    case "get": return try defaults.read(forKey: key).map { "\($0)" } ?? "nil"
    case "set": try defaults.write(.integer(number), forKey: key)
    case "remove": return try "\(defaults.remove(forKey: key))"
    case "fill":
      for index in 0..<number { try defaults.write(.integer(index), forKey: "\(key)\(index)") }
    case "add":
      try defaults.update(forKey: key) { $0 = .integer(($0?.int64Value ?? 0) + number) }
    case "hold":
      try defaults.update(forKey: key) { value in
        try Program.write(Array("holding\n".utf8), to: 1)
        _ = readLine()
        value = .integer((value?.int64Value ?? 0) + number)
      }
    case "group":
      guard let group = GroupDefaults(suiteName: key) else { return "nil" }
      group.set(7, forKey: "k")
      return "\(group.integer(forKey: "k")) \(try group.path())"
    case "tally": try tally(key, number)
    default: return "error usage"
    }
    return "done"
  }

  private func tally(_ name: String, _ count: Int64) throws {
    for _ in 0..<count {
      try defaults.update { contents in
        for key in ["total", name] {
          contents[key] = .integer((contents[key]?.int64Value ?? 0) + 1)
        }
      }
      try Program.write(Array("one\n".utf8), to: 1)
    }
  }
}
