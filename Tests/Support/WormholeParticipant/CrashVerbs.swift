import GroupDefaults
import Wormhole
import WormholeInspection
import WormholePropertyLists
import WormholeSystem

/// The verbs of a participant that makes the changes of `Tests/Faults/crash-states`, and looks at what
/// a crash left of them.
///
/// ```
/// crash-make PRIMITIVE NUMBER    the NUMBERth change
/// crash-look PATH PRIMITIVE      what is there; closes the container, so that its disk can be unmounted
/// crash-write PATH PRIMITIVE     changes it durably, and reads that; answers what a report finds wrong
/// ```
enum CrashVerbs {
  private static let names = ["a", "b", "c"]
  private static let last: Int64 = 1_000_000

  static func perform(
    _ verb: String, _ key: String, _ rest: [String], _ container: SharedContainer
  ) throws -> String {
    let place = verb == "crash-make" ? container : try SharedContainer(location: key)
    switch verb {
    case "crash-make":
      let number = Int64(rest.first ?? "") ?? 0
      try make(key, number, in: place)
      // Another name's flush brings the names of what is not flushed to the disk.
      if ["hasty", "defaults"].contains(key), number.isMultiple(of: 3) {
        try place.value("other").replace(with: .integer(number), durability: .durable)
      }
    case "crash-look": return try look(rest.first ?? "", in: place)
    default: return try write(rest.first ?? "", in: place)
    }
    return "done"
  }

  private static func make(
    _ primitive: String, _ number: Int64, in container: SharedContainer
  ) throws {
    let content = PropertyListValue.integer(number)
    // What the looking process writes does not keep the disk busy later.
    let later: Durability = number < last ? .standard : .durable
    switch primitive {
    case "value": try container.value("v").replace(with: content, durability: .durable)
    case "hasty": try container.value("v").replace(with: content, durability: later)
    case "transaction":
      try container.update(names, durability: .durable) { values in
        for name in names { values[name] = content }
      }
    case "log": try container.log("l").append(content, durability: .durable)
    case "queue":
      try container.queue("q").sender("s").enqueue(content, durability: .durable)
      guard number.isMultiple(of: 3) else { return }
      let consumer = try container.queue("q").consume(until: .now + .seconds(5))
      try consumer.next(until: .now)?.acknowledge()
      consumer.close()
    default: try GroupDefaults(in: container).write(content, forKey: "k", durability: later)
    }
  }

  /// The numbers that are there, in order.
  private static func look(_ primitive: String, in container: SharedContainer) throws -> String {
    var found: [PropertyListValue?] = []
    switch primitive {
    case "value", "hasty": found = [try container.value("v").read()]
    case "transaction": found = try names.map { try container.value($0).read() }
    case "log":
      let reader = try container.log("l").read()
      while let message = try reader.next(until: .now) { found.append(message.payload) }
      reader.close()
    case "queue": found = try container.queue("q").outstanding().map(\.payload)
    default: found = [try GroupDefaults(in: container).read(forKey: "k")]
    }
    return found.map { $0?.int64Value.map(String.init) ?? "nothing" }.joined(separator: " ")
  }

  private static func write(_ primitive: String, in container: SharedContainer) throws -> String {
    try make(primitive, last, in: container)
    let found = try look(primitive, in: container).split(separator: " ").last
    guard found == "\(last)" else { return "after a change: \(found ?? "nothing")" }
    let report = try container.report()
    let unreadable = (report.names.values + report.own.values).filter {
      if case .unreadable = $0.condition { true } else { false }
    }
    let wrong = unreadable.map(\.identifier) + report.foreignEntries.map(\.path)
    return wrong.isEmpty ? "well" : "wrong: " + wrong.joined(separator: " ")
  }
}
