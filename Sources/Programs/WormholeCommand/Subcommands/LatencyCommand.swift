import Wormhole
import WormholeInspection
import WormholePropertyLists
import WormholeSystem
import WormholeWorkshop

extension CommandDescription {
  static let latency = CommandDescription(
    name: "latency",
    abstract: "Measure how long a message takes to a listener in this container.",
    discussion: """
      It sends messages of its own, listens to them, and prints a line each second: the shortest time, \
      the median, the time that 99 of 100 are within, and the longest, in microseconds, from the beginning \
      of a message until the listener has it. At the end a line says the same of all. It works in a \
      directory and on etcd. Its name is removed at the end.
      """,
    options: [
      .value(
        "every", "seconds", .seconds, standard: "0.01", help: "The time between two messages."),
      .count, .timeout,
      .flag("json", help: "Print a line of JSON each second instead of text for people."),
    ]
  ) { arguments, environment in
    let container = try arguments.container.open()
    let name = "wormhole-latency-\(Program.processID)"
    let value = container.value(name)
    let interruption = try Interruption()
    defer { remove(name, container, environment) }
    var heard = try value.snapshots().makeAsyncIterator()
    var all: [Double] = []
    var recent: [Double] = []
    let (deadline, count) = (arguments.deadline(), arguments.count("count") ?? .max)
    var next = ContinuousClock.now + .seconds(1)
    func report(_ times: [Double], _ what: String) throws {
      guard !times.isEmpty else { return }
      let line = LatencyLine(times: times, what: what)
      try environment.print(line: arguments.has("json") ? JSONWriter.string(line.json) : line.text)
    }
    while all.count < count, .now < deadline {
      let number = UInt64(all.count + 1)
      let begin = ContinuousClock.now
      try value.replace(with: .integer(Int64(number)))
      while let snapshot = heard.next(until: .now + .seconds(10)) {
        if try snapshot.propertyList()?.uint64Value == number { break }
      }
      let time = (ContinuousClock.now - begin).nanoseconds
      guard time < 10e9 else {
        throw CommandError(
          verb: "measure", object: "the latency", reason: "a message did not arrive within 10 s",
          status: .deadline)
      }
      all.append(time)
      recent.append(time)
      if .now >= next {
        try report(recent, "1 s")
        recent = []
        next = .now + .seconds(1)
      }
      let pause = arguments.seconds("every") ?? .zero
      if try interruption.isRequestedNow(within: all.count < count ? pause : .zero) { break }
    }
    try report(all, "all")
  }
}

private func remove(
  _ name: String, _ container: SharedContainer, _ environment: CommandEnvironment
) {
  do {
    try container.value(name).remove()
    _ = try container.removeEmptyName(name, .value)
  } catch { environment.tell(error) }
}

/// What is printed of some measured times.
private struct LatencyLine {
  /// In nanoseconds.
  let times: [Double]
  let what: String

  private var figures: [(name: String, nanoseconds: Double)] {
    [
      ("min", times.quantile(0)), ("median", times.median), ("p99", times.quantile(0.99)),
      ("max", times.quantile(1)),
    ]
  }

  var text: String {
    let parts = figures.map { "\($0.name) \(fixed($0.nanoseconds / 1_000, 0)) µs" }
    return "\(what): " + parts.joined(separator: ", ")
      + " (\(times.count) message\(times.count == 1 ? "" : "s"))"
  }

  var json: PropertyListValue {
    var fields: [String: PropertyListValue] = [
      "of": .string(what), "messages": .integer(Int64(times.count)),
    ]
    for (name, time) in figures { fields[name + "Nanoseconds"] = .integer(Int64(time)) }
    return .dictionary(fields)
  }
}
