import FoundationEssentials
import Glibc
import Wormhole
import WormholeDefaultsClients
import WormholeEtcd
import WormholeFoundationClients
import WormholeInspection
import WormholePeers
import WormholePropertyLists
import WormholeSystem

/// Executes a test's commands, one per line, and answers each with one line.
///
/// ```
/// read KEY                         the value's description, or "nil"
/// set KEY NUMBER                   replaces
/// expiring KEY NUMBER MILLISECONDS replaces; the value expires after that time
/// text KEY LENGTH                  replaces with a string of LENGTH characters
/// remove KEY                       removes
/// add KEY NUMBER                   updates: adds to the number
/// hold KEY NUMBER                  updates; in the middle answers "holding" and reads a line before
///                                  it adds the number
/// once KEY NUMBER                  as hold, but a lost lease is an error
/// long KEY NUMBER                  as hold, with a term of ten minutes
/// together A,B,… NUMBER            updates values in one step: adds to each; "A=" is only read, "A-" removed
/// hold-together A,B,… NUMBER       the same; in the middle answers "holding" and reads a line
/// durable-together A,B,… NUMBER    the same as "together", for the disk
/// alike A,B,…                      reads values in an update of all; it is an error if two differ
/// transfer A,B,… NUMBER            NUMBER times takes 1 from a value and gives it to another one
/// die N COMMAND…                   as COMMAND, killed before its Nth system call
/// stop N COMMAND…                  as COMMAND, stopped before its Nth system call
/// calls COMMAND…                   as COMMAND; answers the number of its system calls
/// fall N M COMMAND…                as COMMAND, whose Nth system call finds no space, killed before the Mth
///                                  after it; answers "fell", or "done" if it made fewer calls than N
/// echo KEY COUNT                   answers "listening", then publishes COUNT values of KEY as KEY-echo; answers
///                                  how often its threads gave up the processor to wait, but for the first
/// post NAME                        posts a notification
/// state NAME NUMBER                sets its state
/// settings WORD                    see `Settings`
/// positions WORD                   see `Positions`
/// shared-url NAME                  a file's path in the container of group.com.example.notes
/// defaults-…                       see `DefaultsVerbs`
/// linger KEY                       a second passes when the process exits
/// exit                             ends the process as programs end, without an answer
/// ```
///
/// The other verbs are in `PresenceVerbs`, `PresenterVerbs`, `QueueVerbs`, `LaunchVerbs`,
/// `CoordinationVerbs`, `PeerMessageVerbs`, `PeerRequestVerbs`, `PeerFileVerbs`, `SessionVerbs`,
/// `CommunicatorVerbs`, `CopyVerbs`, `WatchedVerbs`, `WormholeVerbs`, `ForeignArchiveVerbs`, `NotifyVerbs`, `CrashVerbs`
/// and `DiagnosticsVerbs`.
///
/// Errors are answered as "error CODE SENTENCE". A participant that cannot begin ends with status 1.
@main
struct Participant {
  private struct Unequal: Error { let values: String }

  let container: SharedContainer

  static func main() {
    if CommandLine.arguments.last == "session-alone" { SessionVerbs.beAlone() }
    DiagnosticsVerbs.begin()
    EtcdEngine.register()
    do {
      try run()
    } catch {
      Diagnostics.report(error)
      Program.exit(1)
    }
  }

  private static func run() throws {
    if CommandLine.arguments.last == "session-serve" { SessionVerbs.serve() }
    let place = CommandLine.arguments[1]
    let container =
      place.hasPrefix("group:")
      ? try SharedContainer(group: String(place.dropFirst(6)))
      : try SharedContainer(location: place)
    if CommandLine.arguments.dropFirst(2).first == "launched" {
      return try LaunchVerbs.beLaunched(
        CommandLine.arguments[3], CommandLine.arguments[4], container)
    }
    let participant = Participant(container: container)
    while let line = readLine(), line != "exit" {
      let words = line.split(separator: " ").map(String.init)
      let answer = participant.answer(words[...])
      DiagnosticsVerbs.finish()
      try Program.write(answer + "\n", to: 1)
    }
  }

  private func answer(_ words: ArraySlice<String>) -> String {
    do {
      return try perform(words)
    } catch let error as WormholeError {
      return "error \(error.code.rawValue) \(error)"
    } catch {
      return "error other \(error)"
    }
  }

  private func perform(_ words: ArraySlice<String>) throws -> String {
    if let verb = words.first, CoordinationVerbs.all.contains(verb) {
      return try CoordinationVerbs.perform(words)
    }
    if let verb = words.first, verb.hasPrefix("session-") {
      return try SessionVerbs.perform(verb.dropFirst(8), container, Array(words.dropFirst()))
    }
    guard let verb = words.first, let key = words.dropFirst().first else { return "error usage" }
    let rest = words.dropFirst(2)
    let number = rest.first.flatMap { Int64($0) } ?? 1
    let value = container.value(key)
    switch verb {
    case "read": return try value.read().map { "\($0)" } ?? "nil"
    case "set": try value.replace(with: .integer(number))
    case "expiring":
      let lifetime = Duration.milliseconds(Int64(rest.last ?? "") ?? 0)
      try value.replace(with: .integer(number), expiresAfter: lifetime)
    case "durable": try value.replace(with: .integer(number), durability: .durable)
    case "ticks": return ticks(value, durability: rest.first == "durable" ? .durable : .standard)
    case "text": try value.replace(with: .string(String(repeating: "x", count: Int(number))))
    case "remove": try value.remove()
    case "linger": Program.atExit { pauseThread(.seconds(1)) }
    case "add": try value.update { $0 = .integer(($0?.int64Value ?? 0) + number) }
    case "hold": try hold(value, number)
    case "once": try hold(value, number, repeats: false)
    case "long": try hold(value, number, term: .seconds(600))
    case "together", "hold-together", "durable-together":
      try together(key, number, verb)
    case "alike":
      try container.update(key.split(separator: ",").map(String.init)) { values in
        if Set(values.values.map(\.int64Value)).count > 1 { throw Unequal(values: "\(values)") }
      }
    case "transfer":
      let names = key.split(separator: ",").map(String.init)
      for _ in 0..<number {
        let (from, to) = (names.randomElement() ?? key, names.randomElement() ?? key)
        try container.update([from, to]) { values in
          values[from] = .integer((values[from]?.int64Value ?? 0) - 1)
          values[to] = .integer((values[to]?.int64Value ?? 0) + 1)
        }
      }
    case _ where verb.hasPrefix("copy"): try CopyVerbs.perform(verb, key, number, container)
    case "echo": return try echo(value, container.value(key + "-echo"), Int(number))
    case "state": try container.notification(key).setState(UInt64(number))
    case "post": try container.notification(key).post()
    case "forget": return "\(try container.notification(key).remove())"
    case _ where verb.hasPrefix("sweep-"):
      let primitive = NameKind.Primitive(rawValue: String(verb.dropFirst(6))) ?? .value
      return try "\(container.removeEmptyName(key, primitive))"
    case _ where WatchedVerbs.all.contains(verb):
      return try WatchedVerbs.perform(verb, value)
    case _ where PresenceVerbs.all.contains(verb):
      return try PresenceVerbs.perform(verb, container.presence(key), rest.first)
    case _ where LeaderVerbs.all.contains(verb):
      return LeaderVerbs.perform(verb, container.leader(key))
    case _ where PresenterVerbs.all.contains(verb):
      return try PresenterVerbs.perform(verb, key, rest.first)
    case _ where LaunchVerbs.all.contains(verb):
      return try LaunchVerbs.perform(verb, key, Array(rest), container)
    case _ where verb.hasPrefix("queue-"):
      return try QueueVerbs.perform(verb, container.queue(key), Array(rest))
    case _ where verb.hasPrefix("log-"):
      return try LogVerbs.perform(verb, container.log(key), Array(rest))
    case _ where verb.hasPrefix("message-") || verb.hasPrefix("context-"):
      return try PeerMessageVerbs.perform(verb, PeerSession(key, in: container), Array(rest))
    case _ where verb.hasPrefix("peer-"):
      return try PeerRequestVerbs.perform(verb, key, Array(rest), container)
    case _ where verb.hasPrefix("file-"):
      return try PeerFileVerbs.perform(verb, PeerSession(key, in: container), Array(rest))
    case _ where verb.hasPrefix("crash-"):
      return try CrashVerbs.perform(verb, key, Array(rest), container)
    case "events", "measured":
      return try DiagnosticsVerbs.perform(verb, key, Array(rest), container)
    case "settings": return Settings.shared.perform(key, rest.first)
    case "positions": return Positions.shared.perform(key, rest.first)
    case "shared-url": return NoteFiles.sharedURL(key)?.path ?? "none"
    case "die", "stop", "calls": return try faulty(verb, Int(key) ?? 0, words)
    case "fall": return try fall(Int(key) ?? 0, Int(number), words.dropFirst(3))
    case _ where verb.hasPrefix("communicator-"):
      return try CommunicatorVerbs.perform(verb.dropFirst(13), key, rest.first)
    case _ where verb.hasPrefix("mm-"):
      return MainActor.assumeIsolated {
        WormholeVerbs.perform(verb.dropFirst(3), key, Array(rest))
      }
    case _ where verb.hasPrefix("archive-"):
      return try ForeignArchiveVerbs.perform(verb.dropFirst(8), key, rest.first ?? "")
    case _ where verb.hasPrefix("notify-"):
      return MainActor.assumeIsolated {
        NotifyVerbs.perform(verb.dropFirst(7), key, Array(rest))
      }
    case _ where verb.hasPrefix("defaults-"):
      return try DefaultsVerbs(container).perform(verb.dropFirst(9), key, number)
    default: return "error usage"
    }
    return "done"
  }

  private func echo(_ value: PlainValue, _ echo: PlainValue, _ count: Int) throws -> String {
    var values = try value.snapshots().makeAsyncIterator()
    try Program.write("listening\n", to: 1)
    var first = 0
    for number in 0..<count {
      guard let next = values.next(until: .now + .seconds(30)) else { return "error late" }
      if number == 1 { first = waits }
      try echo.replace(with: next.propertyList() ?? 0)
    }
    return "\(waits - first)"
  }

  /// How often a thread of this process has given up the processor to wait (getrusage(2)).
  private var waits: Int {
    var usage = rusage()
    getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
    return usage.ru_nvcsw
  }

  /// Publishes the time all the time, in nanoseconds since the start of the machine, until the disk fails.
  private func ticks(_ value: PlainValue, durability: Durability) -> String {
    var last: UInt64 = 0
    while true {
      let now = bootTimeNanoseconds()
      do {
        try value.replace(with: PropertyListValue(now), durability: durability)
        last = now
        // Often enough to be hot, and the machine has other work.
        pauseThread(.microseconds(500))
      } catch {
        // The power was cut.
        return "\(last)"
      }
    }
  }

  private func hold(
    _ value: PlainValue, _ number: Int64, repeats: Bool = true,
    term: Duration = SharedContainer.standardTerm
  ) throws {
    try value.update(term: term, repeatsAfterLoss: repeats) { content in
      try Program.write(Array("holding\n".utf8), to: 1)
      _ = readLine()
      content = .integer((content?.int64Value ?? 0) + number)
    }
  }

  private func together(_ keys: String, _ number: Int64, _ verb: String) throws {
    let keys = keys.split(separator: ",").map(String.init)
    @Sendable func name(_ key: String) -> String { String(key.prefix { $0 != "=" && $0 != "-" }) }
    try container.update(
      keys.map(name), durability: verb == "durable-together" ? .durable : .standard
    ) { values in
      if verb == "hold-together" {
        try Program.write(Array("holding\n".utf8), to: 1)
        _ = readLine()
      }
      for key in keys where !key.hasSuffix("=") {
        values[name(key)] =
          key.hasSuffix("-") ? nil : .integer((values[key]?.int64Value ?? 0) + number)
      }
    }
  }

  private func faulty(_ verb: String, _ place: Int, _ words: ArraySlice<String>) throws -> String {
    #if DEBUG
      let plan = Faults.Plan { _, index in
        guard verb != "calls", index == place else { return .proceed }
        return verb == "die" ? .die : .stop
      }
      let command = words.dropFirst(verb == "calls" ? 1 : 2)
      let answer = try Faults.$plan.withValue(plan) { try perform(command) }
      return verb == "calls" ? "\(plan.calls)" : answer
    #else
      return "error other built without faults"
    #endif
  }

  private func fall(
    _ place: Int, _ distance: Int, _ command: ArraySlice<String>
  ) throws -> String {
    #if DEBUG
      let plan = Faults.Plan { call, index in
        if index == place, call != .close { return .fail(.noSpace) }
        return index == place + distance ? .die : .proceed
      }
      let answer = Result { try Faults.$plan.withValue(plan) { try perform(command) } }
      guard plan.calls > place else { return try answer.get() }
      return "fell"
    #else
      return "error other built without faults"
    #endif
  }
}
