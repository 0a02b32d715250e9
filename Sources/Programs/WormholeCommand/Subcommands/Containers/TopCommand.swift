import Dispatch
import Synchronization
import Wormhole
import WormholeInspection
import WormholePeers
import WormholeSystem
import WormholeWorkshop

extension CommandDescription {
  static let top = CommandDescription(
    name: "top",
    abstract: "Show what happens in the container, on a screen that follows it; 'q' ends it.",
    discussion: """
      The screen shows the names in which most has happened during the last 10 seconds, what waits in \
      queues and the processes that take it, the processes that are present, the leases that are held, and the peers. It \
      needs a terminal; '\(ProgramName.called) monitor' and '\(ProgramName.called) status --json' report the same to programs. It only \
      reads: it makes nothing, takes no lease, and consumes nothing.
      """
  ) { arguments, environment in
    guard environment.isTerminal, environment.isInputTerminal else {
      throw CommandError(
        cannot: "show the screen",
        because:
          "it needs a terminal; '\(ProgramName.called) monitor' and '\(ProgramName.called) status' print lines",
        status: .usage)
    }
    guard environment.variable("TERM") != "dumb" else {
      throw CommandError(
        cannot: "show the screen",
        because:
          "the terminal cannot move its cursor (TERM is 'dumb'); '\(ProgramName.called) monitor' prints lines",
        status: .usage)
    }
    // It goes on after the time of a call.
    let container = try arguments.limited(until: nil).container.openExisting(to: "watch")
    environment.answers?.beginListening()
    try TopScreen(container).run()
  }
}

/// The screen and the keys of `top`. The main thread draws; others look and listen.
private final class TopScreen: Sendable {
  private struct Seen: Sendable {
    var activity = Activity()
    var report: ContainerReport?
    var peers: [PeerWork] = []
    var problem: String?
    var isOver = false
  }

  private let container: SharedContainer
  private let begun = ContinuousClock.now
  private let seen = Mutex(Seen())
  private let hasColour = Palette.wanted() == .colours

  /// The time between two drawings, if no key is pressed.
  private static let interval: Duration = .seconds(1)
  /// The shortest pause between two looks through the container. A look may read all of it, so looks take
  /// a sixth of the time at most.
  private static let lookPause: Duration = .seconds(2)

  init(_ container: SharedContainer) { self.container = container }

  private var second: Int { Int((ContinuousClock.now - begun) / .seconds(1)) }

  func run() throws {
    let view = Mutex(MonitorView())
    let monitor = try ContainerMonitor(container) { [self] event in
      let lines = view.withLock { $0.lines(of: event) }
      let second = second
      seen.withLock { seen in for line in lines { seen.activity.note(line, at: second) } }
    }
    repeatLook(on: DispatchQueue(label: "wormhole.top"), after: look())
    defer { seen.withLock { $0.isOver = true } }
    try withExtendedLifetime(monitor) { try show() }
  }

  // MARK: Looking

  private func repeatLook(on queue: DispatchQueue, after duration: Duration) {
    let pause = max(Self.lookPause, duration * 5)
    queue.asyncAfter(deadline: .now() + pause / .seconds(1)) { [self] in
      guard !seen.withLock(\.isOver) else { return }
      repeatLook(on: queue, after: look())
    }
  }

  /// - Returns: how long it took.
  private func look() -> Duration {
    ContinuousClock().measure(lookOnce)
  }

  private func lookOnce() {
    do {
      let report = try container.report()
      let session = try PeerSession(PeerSession.standardName, in: container)
      let peers = try session.peers().map { PeerWork($0, in: report) }
      seen.withLock { seen in (seen.report, seen.peers, seen.problem) = (report, peers, nil) }
    } catch {
      seen.withLock { $0.problem = sentence(of: error) }
    }
  }

  // MARK: The terminal

  private func show() throws {
    do throws(Errno) {
      let signals = try SignalReception(of: [.windowChanged, .interrupt, .terminate, .hangUp])
      let mode = try TerminalMode(keysAtOnceOn: 0)
      // The alternate screen, without a cursor.
      try Program.write("\u{1B}[?1049h\u{1B}[?25l", to: 1)
      defer {
        // The terminal may be gone; there is nothing to restore then.
        try? Program.write("\u{1B}[0m\u{1B}[?25h\u{1B}[?1049l", to: 1)
      }
      while true {
        try draw()
        let ready = try waitReadable([0, signals.descriptor], until: .now + Self.interval)
        if ready[1], try signals.take().contains(where: { $0.signal != .windowChanged }) { break }
        if ready[0], try isEnd() { break }
      }
      _ = consume mode
    } catch {
      throw CommandError(cannot: "use the terminal", because: error)
    }
  }

  private func isEnd() throws(Errno) -> Bool {
    let keys = try Program.read(from: 0, maximumBytes: 256)
    // The terminal's end, Ctrl-C and Ctrl-D, which are keys like others in this mode.
    return keys.isEmpty
      || keys.contains { [UInt8(ascii: "q"), UInt8(ascii: "Q"), 3, 4].contains($0) }
  }

  private func draw() throws(Errno) {
    let (second, seen) = (second, seen.withLock { $0 })
    let drawing = TopDrawing(
      activity: seen.activity, second: second, report: seen.report, peers: seen.peers,
      problem: seen.problem, columns: Program.terminalColumns(1) ?? 80,
      rows: Program.terminalRows(1) ?? 24, hasColour: hasColour)
    let lines = drawing.lines.map { $0 + "\u{1B}[K" }
    // No line end after the last line, because the screen would scroll.
    try Program.write("\u{1B}[H" + lines.joined(separator: "\r\n") + "\u{1B}[J", to: 1)
  }
}
