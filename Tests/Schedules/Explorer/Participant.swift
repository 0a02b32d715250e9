import FoundationEssentials
import Synchronization
import Wormhole
import WormholeFiles
import WormholeInspection
import WormholePropertyLists
import WormholeSeam
import WormholeSystem
import WormholeToolkit

/// The code of a participant: operations that are given as text, such as "update a".
///
/// It reports each call and each answer, with numbers that order those of all participants.
struct Participant {
  let container: SharedContainer
  let process: Int

  /// What all processes of a schedule know; set before they are forked.
  struct Task {
    var roles: [[String]] = []
    var coordinates = true
    var container: SharedContainer?
    var mutant: String?
  }
  static let task = Mutex(Task())

  /// The process that prepares a container, and the one that looks at it in the end.
  static let first = 4
  static let last = 5

  /// Begins the given process. Called in a forked child, so it cannot have a context.
  static func begin(_ process: Int32) {
    let task = Self.task.withLock { $0 }
    if process != first, process != last { task.mutant.map { LeaseFault(rawValue: $0)?.begin() } }
    do {
      guard let container = task.container else { throw Unknown(operation: "without a container") }
      let participant = Participant(container: container, process: Int(process))
      if process == first || process == last {
        try participant.frame()
      } else {
        let operations = task.roles[Int(process)]
        // What comes before the first step is not interrupted.
        let early = operations.prefix { $0.hasPrefix("@") }.count
        for (index, operation) in operations.enumerated() {
          if index == early { seam_line() }
          let words = operation.hasPrefix("@") ? String(operation.dropFirst()) : operation
          participant.report(words, number: UInt64(process + 1) * 100 + UInt64(index))
        }
      }
    } catch {
      seam_note("broken \(error)")
    }
  }

  /// Does everything once before processes are forked, which then find it loaded.
  static func warmUp(_ container: SharedContainer) throws {
    let participant = Participant(container: container, process: last)
    let operations = Set(Plans.kinds.joined()).subtracting(["serve", "call", "observe a"])
    seam_refuse_threads(1)
    defer { seam_refuse_threads(0) }
    for operation in operations.sorted() { participant.report(operation, number: 1) }
    try participant.conclude()
  }

  private func frame() throws {
    if process == Self.first { try prepare() } else { try conclude() }
  }

  private func report(_ operation: String, number: UInt64) {
    seam_note("call \(seam_stamp()) \(seam_now()) \(number) \(operation)")
    do {
      let answer = try perform(operation.split(separator: " ").map(String.init), number)
      seam_note("answer \(seam_stamp()) \(seam_now()) \(answer)")
    } catch {
      seam_note("failure \(seam_stamp()) \(seam_now()) \(error)".replacing("\n", with: " "))
    }
  }

  /// - Parameter number: Unique; what a change writes.
  /// - Returns: The answer, as `Oracle` reads it.
  private func perform(_ words: [String], _ number: UInt64) throws -> String {
    let name = words.dropFirst().first ?? "a"
    let value = container.value(name)
    switch words.first {
    case "read": return try Self.text(value.read())
    case "replace": try value.replace(with: PropertyListValue(number))
    case "durable": try value.replace(with: PropertyListValue(number), durability: .durable)
    case "large":
      try value.replace(with: ["n": PropertyListValue(number), "x": .data(Data(count: 100_000))])
    case "remove": _ = try value.remove()
    case "update":
      try value.update { content in
        seam_note("try \(Self.text(content)) \(number)")
        content = PropertyListValue(number)
      }
    case "settle": try settle(value, number)
    case "both", "bothd":
      let durability: Durability = words[0] == "both" ? .standard : .durable
      try container.update(["a", "b"], durability: durability) { values in
        seam_note("both \(Self.text(values["a"])) \(Self.text(values["b"])) \(number)")
        values["a"] = PropertyListValue(number)
        values["b"] = PropertyListValue(number)
      }
    case "pair":
      let values = try container.read(["a", "b"])
      return "\(Self.text(values["a"])) \(Self.text(values["b"]))"
    case "observe":
      // Until a value that another process has published, or ten seconds.
      var found: [String] = []
      var snapshots = try value.snapshots(startsWithCurrent: true).makeAsyncIterator()
      let deadline = ContinuousClock.now + .seconds(3)
      while let snapshot = snapshots.next(until: deadline) {
        found.append(Self.text(try snapshot.propertyList()))
        if found.last != "1" { break }
      }
      return found.joined(separator: " ")
    case "sweep": try sweep()
    case "positions":
      var faults = NameFaults()
      _ = try Log.sweepPositions(in: container, &faults, until: .now + .seconds(10))
      if let fault = faults.all.first { throw fault }
    case "doctor": try examine()
    case "copy": return try copy()
    case "send": try container.queue("q").sender("s\(process)").enqueue(PropertyListValue(number))
    case "keyed":
      try container.queue("q").sender("s").enqueue(PropertyListValue(number), key: "k")
    case "burst": try burst(number)
    case "take", "work", "drop", "join", "refuse": try consume(as: words[0], Int(name) ?? 1)
    case "again":
      for failure in try container.queue("q").failures() {
        _ = try container.queue("q").retry(failure.id)
      }
    case "append": try container.log("l").append(PropertyListValue(number))
    case "messages": return try messages().joined(separator: " ")
    case "subscribe": try subscribe()
    case "enter": try enter()
    case "exclusive", "mutex": try exclude(overtaking: words[0] == "mutex" ? .nobody : .suspended)
    case "clinger": try linger()
    case "cupload":
      _ = try FileCoordinator().coordinate(
        readingItemAt: file, options: .forUploading, byAccessor: Self.content)
    case "cread":
      return try FileCoordinator().coordinate(readingItemAt: file) {
        "\(try Self.content(of: $0)) \($0.lastPathComponent)"
      }
    case "cwrite", "cplace", "cinner":
      try FileCoordinator().coordinate(
        writingItemAt: words[0] == "cinner" ? inner : file,
        options: words[0] == "cplace" ? .inPlace : []
      ) { try change($0, to: number) }
    case "cshare": try changeTwice(number)
    case "cmove":
      let coordinator = FileCoordinator()
      try coordinator.coordinate(
        writingItemAt: file, options: .forMoving, writingItemAt: moved, options: .forReplacing
      ) { old, new in
        let found = try Self.content(of: old)
        seam_note("try \(found) \(number)")
        guard found != "nothing" else { return }
        try rename(old.path, at: Directory.current, to: new.path, at: Directory.current)
        coordinator.item(at: file, didMoveTo: moved)
      }
    case "cdir":
      try makeDirectory(container.location + "/d", at: Directory.current, mode: 0o700)
      try Self.write(1, to: inner)
    case "cmovedir":
      let (old, new) = (inner.deletingLastPathComponent(), outer.deletingLastPathComponent())
      let coordinator = FileCoordinator()
      try coordinator.coordinate(
        writingItemAt: old, options: .forMoving, writingItemAt: new, options: .forReplacing
      ) { from, to in
        try rename(from.path, at: Directory.current, to: to.path, at: Directory.current)
        coordinator.item(at: old, didMoveTo: new)
      }
    case "cdelete":
      try FileCoordinator().coordinate(writingItemAt: file, options: .forDeleting) { url in
        seam_note("try \(url.lastPathComponent)")
        _ = try removeIfPresent(url.path, at: Directory.current)
      }
    case "serve": try serve()
    case "call": return try call(number)
    default: throw Unknown(operation: words.joined(separator: " "))
    }
    return "done"
  }

  // MARK: Files

  private func change(_ url: URL, to number: UInt64) throws {
    seam_note("try \(try Self.content(of: url)) \(number) \(url.lastPathComponent)")
    try Self.write(number, to: url)
    seam_note("told \(seam_stamp())")
  }

  /// Makes two accesses of one purpose, of which the second to publish has to be refused.
  private func changeTwice(_ number: UInt64) throws {
    let coordinator = FileCoordinator()
    var isChanged = false
    do {
      try coordinator.coordinate(writingItemAt: file) { copy in
        var name = ""
        try coordinator.coordinate(writingItemAt: file) {
          try change($0, to: number)
          name = $0.lastPathComponent
        }
        isChanged = true
        // The first access follows an item that is moved while it waits; the second then makes another.
        guard name == copy.lastPathComponent else { throw Unknown(operation: "moved") }
        try Self.write(number + 50, to: copy)
      }
    } catch is Unknown {
      return
    } catch let error as WormholeError
      where error.code == .conflict || isChanged && error.code == .overtaken
    {
      return
    }
    throw Unknown(operation: "the second change was published")
  }

  // MARK: Queues and logs

  private func consume(as kind: String, _ count: Int) throws {
    let queue = container.queue("q")
    let consumer = try kind == "work" ? queue.work() : queue.consume()
    seam_note("joined \(seam_stamp())")
    defer {
      seam_note("closed \(seam_stamp())")
      consumer.close()
    }
    guard kind != "join" else { return }
    for _ in 0..<count {
      guard let entry = try consumer.next(until: .now + .milliseconds(400)) else { return }
      seam_note("got \(seam_stamp()) \(Self.text(entry.payload))")
      if kind == "drop" { return }
      if kind == "refuse" {
        try entry.fail("refused", isKept: true)
        seam_note("refused \(seam_stamp()) \(Self.text(entry.payload))")
        continue
      }
      try entry.acknowledge()
      seam_note("acknowledged \(seam_stamp()) \(Self.text(entry.payload))")
    }
  }

  /// Sends an entry, and three that are stored together, as threads of one sender do.
  private func burst(_ number: UInt64) throws {
    let queue = container.queue("q")
    try queue.sender("s\(process)").enqueue(PropertyListValue(number))
    let entries = (1...3).map { Batch.Entry(payload: PropertyListValue(number + 50 + $0)) }
    let bytes = try Batch(entries).bytes()
    let name = EntryFile(
      order: queue.clock(), sender: "s\(process)", count: 3, bytes: bytes.count)
    let path = container.location + "/queues/q/" + QueueDirectory.pendingPath(name)
    try FileDescriptor.open(path, [.writeOnly, .create]).writeAll(bytes)
  }

  /// Acknowledges an entry within a change of a value.
  private func settle(_ value: PlainValue, _ number: UInt64) throws {
    let consumer = try container.queue("q").consume()
    defer { consumer.close() }
    guard let entry = try consumer.next(until: .now + .milliseconds(400)) else { return }
    seam_note("got \(seam_stamp()) \(Self.text(entry.payload))")
    try value.update { content in
      seam_note("try \(Self.text(content)) \(number)")
      try entry.acknowledge()
      content = PropertyListValue(number)
    }
    seam_note("acknowledged \(seam_stamp()) \(Self.text(entry.payload))")
  }

  private func messages() throws -> [String] {
    let reader = try container.log("l").read()
    defer { reader.close() }
    var found: [String] = []
    while let message = try reader.next(until: .now) { found.append(Self.text(message.payload)) }
    return found
  }

  private func subscribe() throws {
    let reader = try container.log("l").subscribe("r")
    seam_note("subscribed")
    defer { reader.close() }
    while let message = try reader.next(until: .now) {
      seam_note("got \(seam_stamp()) \(Self.text(message.payload))")
      try reader.acknowledge()
      seam_note("acknowledged \(seam_stamp()) \(Self.text(message.payload))")
    }
  }

  // MARK: Presences, files, calls

  private func enter() throws {
    let presence = container.presence("p")
    let registration = try presence.enter()
    let isSeen = try presence.members().contains { $0.isOwnProcess }
    if !isSeen { seam_note("litter: a member does not see itself") }
    registration.close()
  }

  private func exclude(overtaking: Presence.Overtaking) throws {
    let registration = try container.presence("p").enterExclusively(overtaking: overtaking)
    seam_note("in \(seam_stamp())")
    // Something that others can come between.
    _ = try FileDescriptor.open(container.location + "/mark", [.writeOnly, .create])
    // Twice, because only an answer to a later question shows that the role was lost.
    for _ in 0..<2 {
      let from = seam_stamp()
      do {
        try registration.confirm()
        seam_note("confirmed \(from)")
      } catch {
        seam_note("lost \(from)")
      }
    }
    seam_note("out \(seam_stamp())")
    registration.close()
  }

  private func url(_ name: String) -> URL { URL(filePath: container.location + "/" + name) }
  private var file: URL { url("file") }
  private var moved: URL { url("moved") }
  private var inner: URL { url("d/file") }
  private var outer: URL { url("e/file") }

  private static func write(_ number: UInt64, to url: URL) throws {
    try FileDescriptor.open(url.path, [.writeOnly, .create, .truncate]).writeAll(
      Array("\(number)".utf8))
  }

  private static func content(of url: URL) throws -> String {
    guard let file = try ifPresent(FileDescriptor.open(url.path, .readOnly)) else {
      return "nothing"
    }
    let bytes = try file.readToEnd(expectedBytes: 8, maximumBytes: 4_096)
    return bytes.isEmpty ? "empty" : String(decoding: bytes, as: UTF8.self)
  }

  /// Reads a file twice within one access.
  private func linger() throws {
    try FileCoordinator().coordinate(readingItemAt: file) { url in
      let first = try Self.content(of: url)
      pauseThread(.milliseconds(300))
      let second = try Self.content(of: url)
      if first != second { seam_note("torn \(first) \(second)") }
    }
  }

  private func serve() throws {
    let endpoint = CallEndpoint(in: container) { call in
      guard let number = call.value.uint64Value else { return }
      Diagnostics.reporting { _ = try call.answer(.reply(PropertyListValue(number + 1_000))) }
    }
    try container.value("address").replace(with: .string(endpoint.open()))
    endpoint.block(for: WakeLatch(), until: .now + .seconds(1))
    endpoint.close()
  }

  private func call(_ number: UInt64) throws -> String {
    let deadline = ContinuousClock.now + .milliseconds(500)
    while ContinuousClock.now < deadline {
      guard let address = try container.value("address").read()?.stringValue else {
        pauseThread(.milliseconds(20))
        continue
      }
      let endpoint = CallEndpoint(in: container) { _ in }
      defer { endpoint.close() }
      let latch = WakeLatch()
      let answer = Mutex("nothing")
      let id = try endpoint.begin(PropertyListValue(number), until: .now + .seconds(2)) { end in
        answer.withLock { answer in
          if case .answered(.reply(let value)) = end {
            answer = Self.text(value)
          } else {
            answer = "\(end)"
          }
        }
        latch.raise()
      }
      guard try endpoint.post(id, to: address, isWatched: true) == .posted else { return "gone" }
      endpoint.block(for: latch, until: .now + .seconds(3))
      return answer.withLock { $0 }
    }
    return "gone"
  }

  struct Unknown: Error {
    let operation: String
  }

  static func text(_ content: PropertyListValue?) -> String {
    guard let content else { return "nothing" }
    return (content.uint64Value ?? content["n"]?.uint64Value).map(String.init) ?? "damaged"
  }

  private func sweep() throws {
    for failure in try container.sweep().failures { seam_note("litter the sweep: \(failure)") }
  }

  /// Looks at the container while others work; what is wrong whatever they do, and what only a killed
  /// or stopped process may leave.
  private func examine() throws {
    let report = try container.report()
    for entry in report.foreignEntries { seam_note("wrong: foreign \(entry.path)") }
    for failure in report.failures { seam_note("wrong: \(failure)") }
    for leftover in report.leftovers { seam_note("left \(leftover.kind) \(leftover.path)") }
  }

  /// Copies the container, and reads two values of the copy.
  private func copy() throws -> String {
    let place = container.location + "/../copies/\(process)"
    var copy = ContainerCopy(of: container)
    copy.allowsUse = true
    _ = try copy.run(to: place, until: .now + .seconds(5))
    let values = try SharedContainer(url: URL(filePath: place)).read(["a", "b"])
    return "\(Self.text(values["a"])) \(Self.text(values["b"]))"
  }

  private func prepare() throws {
    try container.value("a").replace(with: 1)
    try container.value("b").replace(with: 1)
    try Self.write(1, to: file)
  }

  /// Looks at everything that the others have left.
  private func conclude() throws {
    try noteSites("site")
    try readAll()
    if coordinates {
      // The next access removes what others have left of a file's coordination.
      let directories = [inner, outer].map { $0.deletingLastPathComponent() }
      let areThere = try directories.contains { try ifPresent(fileStatus($0.path)) != nil }
      for url in [file, moved] + (areThere ? directories : []) {
        try FileCoordinator().coordinate(writingItemAt: url) { _ in }
      }
    }
    try sweep()
    // A sweep changes nothing that is whole.
    try readAll()
    let members = try container.presence("p").members()
    for member in members { seam_note("litter member: \(member)") }
    if try container.queueNames().contains("q") {
      let consumer = try container.queue("q").consume()
      while let entry = try consumer.next(until: .now + .milliseconds(300)) {
        seam_note("rest \(Self.text(entry.payload))")
        try entry.acknowledge()
      }
      consumer.close()
    }
    if try container.logNames().contains("l") {
      seam_note("log \(try messages().joined(separator: " "))")
    }
    if try !container.queueNames().isEmpty { try sweep() }
    let report = try container.report()
    for leftover in report.leftovers { seam_note("litter \(leftover.kind) \(leftover.path)") }
    for file in report.quarantine { seam_note("litter put aside: \(file.path)") }
    for entry in report.foreignEntries { seam_note("litter foreign: \(entry.path)") }
    try noteSites("litter")
    for lease in report.leases { seam_note("litter held: \(lease.path)") }
    for failure in report.failures { seam_note("litter not examined: \(failure)") }
  }

  /// Whether any process coordinates files.
  private var coordinates: Bool { Self.task.withLock { $0.coordinates } }

  private func readAll() throws {
    for name in ["a", "b"] {
      seam_note("final \(name) \(Self.text(try container.value(name).read()))")
    }
    guard coordinates else { return }
    for (name, url) in [("f", file), ("g", moved)] {
      let whole = try FileCoordinator().coordinate(readingItemAt: url, byAccessor: Self.content)
      seam_note("final \(name) \(whole)")
    }
    let places = try [inner, outer].filter { try ifPresent(fileStatus($0.path)) != nil }
    for url in places { seam_note("final i \(try Self.content(of: url))") }
  }

  /// Names what coordination has left beside the file.
  private func noteSites(_ kind: String) throws {
    let root = try FileDescriptor.open(container.location, [.readOnly, .directory])
    for entry in try root.entries() where entry.name.hasPrefix(".") {
      seam_note("\(kind) beside the file: \(entry.name.text)")
    }
  }
}
