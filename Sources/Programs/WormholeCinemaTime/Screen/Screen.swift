import Foundation
import Synchronization
import WatchConnectivity
import WormholeSystem
import WormholeTerminals
import WormholeToolkit

/// A side at a terminal: a screen that is redrawn when something changes here or on the other side.
@MainActor
final class Screen {
  static let shared = Screen()

  private var state = ScreenState(
    isPhone: Cinema.isPhone, watchName: Cinema.watchName, otherCommand: Cinema.options.otherCommand)
  private var reader = KeyReader()
  private var mode: TerminalMode?
  private var signals: SignalReception?
  private var sources: [any DispatchSourceProtocol] = []
  private let palette = Palette.wanted()
  /// Whether it has the terminal: not while this side is suspended, or continued in the background.
  private var isShown = false

  func begin() {
    do {
      let signals = try SignalReception(
        of: [.windowChanged, .interrupt, .terminate, .hangUp, .continue])
      listen(signals.descriptor) { Screen.shared.takeSignals() }
      self.signals = consume signals
    } catch {
      Cinema.fail("the terminal cannot be used: \(error)", 74)
    }
    enter()
    listen(0) { Screen.shared.takeKeys() }
    Cinema.setScreen { event in DispatchQueue.main.async { Screen.shared.show(event) } }
    TicketOffice.shared.didChange = { Screen.shared.draw() }
    draw()
    tick()
  }

  private func listen(_ descriptor: Int32, _ handler: @escaping @MainActor () -> Void) {
    let source = DispatchSource.makeReadSource(fileDescriptor: descriptor, queue: .main)
    source.setEventHandler { MainActor.assumeIsolated { handler() } }
    source.resume()
    sources.append(source)
  }

  // MARK: The terminal

  private func enter() {
    guard Program.isInForeground(of: 0) else { return }
    do {
      // Released first: an old mode that this process had in the background.
      mode = nil
      mode = try TerminalMode(keysAtOnceOn: 0)
    } catch {
      Cinema.fail("the terminal cannot be used: \(error)", 74)
    }
    // The alternate screen, without a cursor.
    write("\u{1B}[?1049h\u{1B}[?25l")
    isShown = true
  }

  private func leave() {
    // Otherwise it is already the shell's.
    guard isShown, Program.isInForeground(of: 0) else { return }
    write("\u{1B}[0m\u{1B}[?25h\u{1B}[?1049l")
    mode = nil
    isShown = false
  }

  /// Gives the terminal back, and stops, as any program does at Control-Z.
  private func suspend() throws {
    leave()
    try Program.send(.terminalStop, to: 0)
    // Without a shell that could continue it, the kernel drops the signal.
    DispatchQueue.main.asyncAfter(deadline: .now() + .milliseconds(200)) {
      guard !Screen.shared.isShown else { return }
      Screen.shared.enter()
      Screen.shared.draw()
    }
  }

  private func end(_ status: Int32) -> Never {
    leave()
    exit(status)
  }

  private func write(_ text: String) {
    do {
      try Program.write(text, to: 1)
    } catch {
      // The terminal is gone, as the hang-up signal also says.
      exit(1)
    }
  }

  private func takeSignals() {
    do {
      let received = try signals?.take() ?? []
      let ends = [Signal.interrupt, .terminate, .hangUp]
      if received.contains(where: { ends.contains($0.signal) }) { end(0) }
      if received.contains(where: { $0.signal == .continue }) {
        // The shell has changed the terminal's mode meanwhile, or still has the terminal.
        leave()
        isShown = false
        enter()
      }
    } catch {
      end(74)
    }
    draw()
  }

  // MARK: Showing

  /// Draws again with each minute of the clock.
  private func tick() {
    let rest = 60 - Date().timeIntervalSince1970.truncatingRemainder(dividingBy: 60)
    DispatchQueue.main.asyncAfter(deadline: .now() + rest + 0.01) {
      Screen.shared.draw()
      Screen.shared.tick()
    }
  }

  private func show(_ event: Cinema.Event) {
    switch event {
    case .message(let message): state.message = message
    case .obstacle(let obstacle): state.obstacle = obstacle
    }
    draw()
  }

  private func draw() {
    guard isShown else { return }
    let session = WCSession.default
    state.update(tickets: TicketOffice.shared.purchased)
    state.isOtherReachable = session.activationState == .activated && session.isReachable
    // An error is shown when the key is pressed.
    state.isOtherSuspended = (try? Obstacle.otherSide()?.isSuspended) ?? false
    state.time = TimeOfDay.now
    state.nextShow = state.isPhone ? nil : Complication.movie()
    state.code = state.movie.flatMap { state.isPurchased($0) ? TicketCodes.lines(of: $0) : nil }
    let size = Program.terminalSize(1)
    let canvas = ScreenDrawing.draw(&state, columns: size.columns ?? 80, rows: size.rows ?? 24)
    write(canvas.output(in: palette))
  }

  // MARK: Keys

  private func takeKeys() {
    do {
      let bytes = try Program.read(from: 0, maximumBytes: 256)
      guard !bytes.isEmpty else { end(0) }
      take(reader.keys(in: bytes))
    } catch {
      end(74)
    }
    guard reader.isWaiting else { return }
    // An escape byte is the key if nothing follows it soon, as in curses.
    DispatchQueue.main.asyncAfter(deadline: .now() + .milliseconds(50)) {
      let screen = Screen.shared
      if screen.reader.isWaiting { screen.take(screen.reader.finish()) }
    }
  }

  private func take(_ keys: [ScreenKey]) {
    for key in keys {
      guard let action = state.handle(key) else { continue }
      do {
        try perform(action)
      } catch {
        state.message = .failure("\(error)")
      }
    }
    draw()
  }

  private func perform(_ action: ScreenState.Action) throws {
    switch action {
    case .buy(let movie):
      try change(movie, isBought: true, "Bought \(movie.quoted) at \(movie.time).")
    case .delete(let movie): try change(movie, isBought: false, "Gave back \(movie.quoted).")
    case .suspend: try suspend()
    case .suspendOther: try suspendOther()
    case .quit: end(0)
    }
  }

  private func suspendOther() throws {
    guard let other = try Obstacle.otherSide() else {
      state.message = .notice("There is no \(state.otherSide) to suspend.")
      return
    }
    try Program.send(other.isSuspended ? .continue : .stop, to: other.processID)
    state.message = .notice(
      other.isSuspended
        ? "The \(state.otherSide) goes on."
        : "The \(state.otherSide) is stopped, and blocks nobody.")
  }

  private func change(_ movie: Movie, isBought: Bool, _ done: String) throws {
    let hasChanged = try TicketOffice.shared.change(movie, isBought: isBought)
    state.message =
      hasChanged ? .success(done) : .failure("The other side was faster with \(movie.quoted).")
  }
}
