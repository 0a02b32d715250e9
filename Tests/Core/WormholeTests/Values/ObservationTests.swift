import Dispatch
import Synchronization
import Testing
import WormholePropertyLists
import WormholeTestSupport
import WormholeToolkit

@testable import Wormhole
@testable import WormholeSystem

@Suite("An observer of a value", .blocking, .bothEngines)
struct ObservationTests {
  let directory: TemporaryDirectory
  let container: SharedContainer
  let queue = DispatchQueue(label: "test")

  init() throws {
    directory = try TemporaryDirectory()
    container = try directory.container()
  }

  private func numbers(_ heard: Heard<PlainSnapshot>) throws -> [Int64?] {
    try heard.all.map { try $0.propertyList()?.int64Value }
  }

  // The second one ended the process.
  @Test("as one sequence, in several tasks, ends none of them but with its task")
  func severalTasks() async throws {
    let value = container.value("v", as: Int.self)
    let snapshots = try value.snapshots()
    let heard = Heard<Int>()
    let tasks = (0..<2).map { _ in
      Task { for await snapshot in snapshots { heard.add(try snapshot.content ?? -1) } }
    }
    try await Blocking.run {
      try eventually("a value is heard") {
        try value.replace(with: 7)
        return !heard.all.isEmpty
      }
    }
    for task in tasks {
      task.cancel()
      // Any end will do.
      _ = await task.result
    }
  }

  @Test("gets the last value after any burst of another process, and none after a newer one")
  func burst() throws {
    let value = container.value("k")
    let heard = Heard<PlainSnapshot>()
    let observation = try value.observe(on: queue) { heard.add($0) }
    #expect(observation.detection == .events)
    let other = try Participant(directory.path)
    for number in 1...200 { #expect(try other.ask("set k \(number)") == "done") }
    try eventually("the last value is delivered") { try numbers(heard).last == 200 }
    let sequence = try numbers(heard).compactMap { $0 }
    #expect(sequence == sequence.sorted() && Set(sequence).count == sequence.count)
    observation.cancel()
  }

  @Test("gets every single change, including its own process's, and the removal")
  func single() throws {
    let value = container.value("k")
    try value.replace(with: 0)
    let heard = Heard<PlainSnapshot>()
    let observation = try value.observe(startsWithCurrent: true, on: queue) { heard.add($0) }
    try eventually("the current value comes first") { try numbers(heard) == [0] }
    try value.replace(with: 1)
    try eventually("a change is delivered") { try numbers(heard) == [0, 1] }
    try value.update { $0 = 2 }
    try eventually("an update is delivered") { try numbers(heard) == [0, 1, 2] }
    try value.remove()
    try eventually("a removal is delivered") { try numbers(heard) == [0, 1, 2, nil] }
    withExtendedLifetime(observation) {}
  }

  @Test(
    "gets the change of a foreign program: a shell's redirection",
    .onlyDirectories("it writes the file"))
  func foreignWriter() throws {
    let value = container.value("k")
    try value.replace(with: 0)
    let heard = Heard<PlainSnapshot>()
    let observation = try value.observe(on: queue) { heard.add($0) }
    let xml = #"<plist version=\"1.0\"><integer>7</integer></plist>"#
    try directory.shell("echo \"\(xml)\" > '\(value.path)'")
    try eventually("the shell's value is delivered") {
      heard.all.contains { snapshot in
        // Half a file is an error of that moment; the whole one must come.
        (try? snapshot.propertyList()) == 7
      }
    }
    withExtendedLifetime(observation) {}
  }

  @Test("gets an error for damaged bytes, once, and the value that repairs them")
  func damage() throws {
    let value = container.value("k")
    try value.replace(with: 0)
    let heard = Heard<PlainSnapshot>()
    let observation = try value.observe(on: queue) { heard.add($0) }
    try value.replace(withBytes: Array("garbage".utf8))
    try eventually("the damage is delivered") { heard.all.count == 1 }
    #expect(throws: WormholeError.self) { try heard.all[0].propertyList() }
    try value.replace(with: 1)
    try eventually("the new value is delivered") { heard.all.count == 2 }
    #expect(try heard.all[1].propertyList() == 1)
    withExtendedLifetime(observation) {}
  }

  @Test("may cancel itself in its handler, and is never called again after that")
  func cancelsItself() throws {
    let value = container.value("k")
    let heard = Heard<PlainSnapshot>()
    let box = Mutex<ObservationToken?>(nil)
    let observation = try value.observe(on: queue) { snapshot in
      heard.add(snapshot)
      box.withLock { $0 }?.cancel()
    }
    box.withLock { $0 = observation }
    try value.replace(with: 1)
    try eventually("it is called") { heard.all.count == 1 }
    let watchers = Heard<PlainSnapshot>()
    let second = try value.observe(on: queue) { watchers.add($0) }
    try value.replace(with: 2)
    try eventually("another one is called") { watchers.all.count == 1 }
    #expect(heard.all.count == 1)
    withExtendedLifetime(second) {}
  }

  @Test("is called one call at a time and in order, on any queue")
  func concurrentQueue() throws {
    let value = container.value("k")
    let heard = Heard<PlainSnapshot>()
    let inside = Atomic(0)
    let overlaps = Atomic(0)
    let observation = try value.observe(on: .global()) { snapshot in
      if inside.add(1, ordering: .sequentiallyConsistent).newValue > 1 {
        overlaps.add(1, ordering: .relaxed)
      }
      heard.add(snapshot)
      inside.subtract(1, ordering: .sequentiallyConsistent)
    }
    for number in 1...300 { try value.replace(with: PropertyListValue(number)) }
    try eventually("the last value is delivered") { try numbers(heard).last == 300 }
    #expect(overlaps.load(ordering: .relaxed) == 0)
    let sequence = try numbers(heard).compactMap { $0 }
    #expect(sequence == sequence.sorted())
    withExtendedLifetime(observation) {}
  }

  @Test(
    "continues when its directory or the whole container is removed or replaced",
    .onlyDirectories("it removes directories"),
    arguments: [
      "rm -r values/k", "mv values/k values/elsewhere", "rm -r values",
      "mv values gone; mkdir -p -m 700 values",
    ])
  func replaced(command: String) throws {
    let value = container.value("k")
    try value.replace(with: 0)
    let heard = Heard<PlainSnapshot>()
    let observation = try value.observe(on: queue) { heard.add($0) }
    try directory.shell(command)
    try eventually("the removal is delivered") { heard.all.contains(where: \.isAbsent) }
    let other = try Participant(directory.path)
    #expect(try other.ask("set k 8") == "done")
    try eventually("the new value is delivered") { try numbers(heard).last == 8 }
    withExtendedLifetime(observation) {}
  }

  @Test(
    "continues when the container is moved away and another takes its place",
    .onlyDirectories("it moves the directory"))
  func containerReplaced() throws {
    let inside = directory.path + "/c"
    try makeDirectory(inside)
    let value = try SharedContainer(path: inside).value("k")
    try value.replace(with: 0)
    let heard = Heard<PlainSnapshot>()
    let observation = try value.observe(on: queue) { heard.add($0) }
    try directory.shell("mv c old; mkdir -m 700 c")
    let other = try Participant(inside)
    #expect(try other.ask("set k 9") == "done")
    try eventually("the new container's value is delivered") { try numbers(heard).last == 9 }
    withExtendedLifetime(observation) {}
  }

  @Test("gets the content of a container that takes the place of its own, without another event")
  func containerExchanged() throws {
    let inside = directory.path + "/c"
    for (path, number) in [(inside, 0), (directory.path + "/other", 9)] {
      try makeDirectory(path)
      try SharedContainer(path: path).value("k").replace(with: PropertyListValue(number))
    }
    let heard = Heard<PlainSnapshot>()
    let observation = try SharedContainer(path: inside).value("k").observe(on: queue) {
      heard.add($0)
    }
    try directory.shell("mv c old; mv other c")
    try eventually("the other container's value is delivered") { try numbers(heard).last == 9 }
    withExtendedLifetime(observation) {}
  }

  @Test("as a sequence gets the same values, and ends with its task")
  func sequence() async throws {
    let value = container.value("k")
    try await value.replace(with: 0)
    let snapshots = try value.snapshots(startsWithCurrent: true)
    let heard = Heard<Int64>()
    let task = Task {
      for await snapshot in snapshots {
        heard.add(try snapshot.propertyList()?.int64Value ?? -1)
        if heard.all.count < 3 { try await value.replace(with: PropertyListValue(heard.all.count)) }
      }
      return "ended"
    }
    try await eventuallyAsync("three are delivered") { heard.all == [0, 1, 2] }
    task.cancel()
    #expect(try await task.value == "ended")
  }

  @Test("that blocks gets the values of other processes, and nothing once its deadline has passed")
  func blocking() throws {
    let value = container.value("k")
    try value.replace(with: 0)
    var next = try value.snapshots(startsWithCurrent: true).makeAsyncIterator()
    #expect(try next.next(until: .now)?.propertyList() == 0)
    #expect(next.next(until: .now) == nil)
    let other = try Participant(directory.path)
    for number in 1...20 {
      try other.tell("set k \(number)")
      #expect(
        try next.next(until: .now + .seconds(60))?.propertyList() == PropertyListValue(number))
      #expect(try other.answer() == "done")
    }
    #expect(next.next(until: .now + .milliseconds(1)) == nil)
  }

  @Test(
    "that blocks again and again is woken once for each value, and no other thread of its process",
    .onlyDirectories("on etcd a connection is read by another thread"))
  func switches() throws {
    let (value, echo) = (container.value("k"), container.value("k-echo"))
    try value.replace(with: 0)
    let other = try Participant(directory.path)
    #expect(try other.ask("echo k 202") == "listening")
    var echoes = try echo.snapshots().makeAsyncIterator()
    for number in 1...202 {
      try value.replace(with: PropertyListValue(number))
      var heard: PropertyListValue?
      while heard != PropertyListValue(number) {
        let next = echoes.next(until: soon)
        heard = try #require(next).propertyList()
      }
    }
    let waits = try #require(Int(try other.answer()))
    // 200 for the values at most, and now and then one for the disk; through another thread it were
    // twice as many.
    #expect(waits < 250)
  }

  @Test(
    "that blocks leads only from its second wait on, with few others; a task does not lead",
    .onlyDirectories("on etcd nobody leads"))
  func leads() async throws {
    let value = container.value("k")
    try await value.replace(with: 0)
    var iterators = try (0..<(ChangeMonitor.mostLed + 1)).map { _ in
      try value.snapshots().makeAsyncIterator()
    }
    func block(_ index: Int, milliseconds: Int = 0) -> PlainSnapshot? {
      iterators[index].next(until: .now + .milliseconds(milliseconds))
    }
    #expect(block(0) == nil && !iterators[0].leads)
    for index in iterators.indices { #expect(block(index) == nil && block(index) == nil) }
    // Other tests may lead meanwhile.
    #expect(iterators.count { $0.leads } <= ChangeMonitor.mostLed)
    try await value.replace(with: 1)
    for index in iterators.indices {
      #expect(try block(index, milliseconds: 30_000)?.propertyList() == 1)
    }
    try await value.replace(with: 2, expiresAfter: .milliseconds(1))
    for index in iterators.indices {
      while try block(index, milliseconds: 30_000)?.propertyList() != nil {}
    }
    try await value.replace(with: 3)
    for index in iterators.indices {
      #expect(try await iterators[index].next()?.propertyList() == 3)
      #expect(!iterators[index].leads)
    }
  }

  @Test("in a task gets nothing once its deadline has passed, and the value that comes afterwards")
  func deadlines() async throws {
    let value = container.value("k")
    var next = try value.snapshots().makeAsyncIterator()
    #expect(await next.next(until: .now + .milliseconds(1)) == nil)
    try await value.replace(with: 1)
    #expect(try await next.next(until: .now + .seconds(60))?.propertyList() == 1)
    #expect(await next.next(until: .now) == nil)
  }

  @Test(
    "reads promptly only what is small and plain; the rest is read where it may wait",
    .onlyDirectories("it changes the file"))
  func prompt() throws {
    let value = container.value("k")
    #expect(value.store.file.promptSnapshot()?.isAbsent == nil, "there is none")
    try value.replace(with: 1)
    let prompt = try #require(value.store.file.promptSnapshot())
    #expect(try prompt.propertyList() == 1)
    #expect(try prompt.version == value.version() && prompt.publisher == value.snapshot().publisher)
    try value.replace(with: 2, expiresAfter: .seconds(600))
    #expect(value.store.file.promptSnapshot()?.isAbsent == nil, "it expires")
    try value.replace(with: .string(longText(70_000)))
    #expect(value.store.file.promptSnapshot()?.isAbsent == nil, "it is large")
    try value.remove()
    try makeFIFO(FileName(value.path), at: Directory.current)
    #expect(value.store.file.promptSnapshot()?.isAbsent == nil, "it is no file")
  }

  @Test("is called again for a change that comes while it is being called")
  func signalledDuringCall() throws {
    let truth = Atomic(1)
    let heard = Heard<Int>()
    let own = Mutex<ChangeDelivery<Int>?>(nil)
    let delivery = ChangeDelivery<Int>(initial: 0, on: queue) { last in
      let now = truth.load(ordering: .sequentiallyConsistent)
      let call: @Sendable () -> Void = {
        heard.add(now)
        guard now < 3 else { return }
        truth.add(1, ordering: .sequentiallyConsistent)
        own.withLock { $0 }?.signal()
      }
      return (now, now == last ? nil : call)
    }
    own.withLock { $0 = delivery }
    delivery.open(signalled: true)
    try eventually("all are delivered") { heard.all == [1, 2, 3] }
    own.withLock { $0 = nil }
  }

  @Test("as a released sequence, iterated or not, keeps nothing alive")
  func droppedSequence() async throws {
    weak var abandoned: ContainerRoot?
    do {
      let value = try directory.container().value("k")
      abandoned = value.container.root
      _ = try value.snapshots()
      let iterated = try value.snapshots(startsWithCurrent: true)
      for await _ in iterated { break }
      #expect(abandoned != nil)
    }
    // A look that was under way may end a moment later.
    try await eventuallyAsync("everything is freed") { [weak abandoned] in abandoned == nil }
  }

  @Test(
    "polls and reports it if there is no inotify instance, or no watch left",
    arguments: [
      SystemCall.inotifyInit, .inotifyAddWatch,
    ])
  func polls(missing: SystemCall) throws {
    #if DEBUG
      let monitor = ChangeMonitor()
      let signals = Heard<Int>()
      let error: Errno = missing == .inotifyInit ? .tooManyOpenFiles : .noSpace
      let plan = Faults.Plan { call, _ in call == missing ? .fail(error) : .proceed }
      let watch = Faults.$plan.withValue(plan) {
        monitor.watch(path: directory.path, parents: [], prepare: {}, hear: { _ in signals.add(1) })
      }
      guard case .polling(let reason) = watch.detection else {
        Issue.record("\(watch.detection)")
        return
      }
      #expect(reason.contains("inotify"))
      try eventually("it is looked at without an event") { !signals.all.isEmpty }
      let next = monitor.watch(path: directory.path, parents: [], prepare: {}, hear: { _ in })
      #expect(next.detection == .events, "as soon as there is one")
    #endif
  }
}
