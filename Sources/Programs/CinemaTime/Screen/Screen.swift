import Foundation
import SystemCalls
import Terminals
import WatchConnectivity

/// A side at a terminal: a screen that is redrawn when something changes here or on the other side.
@MainActor
final class Screen {
  static let shared = Screen()

  private var state = ScreenState(isPhone: Cinema.isPhone)
  private var mode: TerminalMode?
  private var signals: SignalReception?
  private var sources: [any DispatchSourceProtocol] = []
  private let hasColour = Colour.isWanted()

  private init() {}

  func begin() {
    do {
      let signals = try SignalReception(of: [.windowChanged, .interrupt, .terminate, .hangUp])
      listen(signals.descriptor) { Screen.shared.takeSignals() }
      self.signals = consume signals
      try enter()
    } catch {
      leave()
      Main.fail("the terminal cannot be used: \(error)", 74)
    }
    listen(0) { Screen.shared.takeKeys() }
    Cinema.sendLog { line in
      DispatchQueue.main.async { Screen.shared.show(message: line) }
    }
    TicketOffice.shared.didChange = { Screen.shared.draw() }
    Handoff.opened = { movie in
      Screen.shared.state.page = .details(movie, isConfirming: false)
    }
    draw()
  }

  private func listen(_ descriptor: Int32, _ handler: @escaping @MainActor () -> Void) {
    let source = DispatchSource.makeReadSource(fileDescriptor: descriptor, queue: .main)
    source.setEventHandler { MainActor.assumeIsolated { handler() } }
    source.resume()
    sources.append(source)
  }

  // MARK: The terminal

  private func enter() throws(Errno) {
    mode = try TerminalMode(keysAtOnceOn: 0)
    // The alternate screen, without a cursor.
    write("\u{1B}[?1049h\u{1B}[?25l")
  }

  private func leave() {
    write("\u{1B}[0m\u{1B}[?25h\u{1B}[?1049l")
    mode = nil
  }

  private func end(_ status: Int32) -> Never {
    leave()
    exit(status)
  }

  private func write(_ text: String) {
    do {
      try Program.write(Array(text.utf8), to: 1)
    } catch {
      // The terminal is gone; the hang-up signal says so, too.
      exit(1)
    }
  }

  private func takeSignals() {
    do {
      let received = try signals?.take() ?? []
      if received.contains(where: { $0.signal != .windowChanged }) { end(0) }
    } catch {
      end(74)
    }
    draw()
  }

  private func suspend() {
    leave()
    do {
      try Program.send(.stop, to: Program.processID)
      try enter()
    } catch {
      end(74)
    }
  }

  // MARK: Showing

  private func show(message: String) {
    state.message = message
    draw()
  }

  private func draw() {
    let office = TicketOffice.shared
    state.update(tickets: office.purchased, films: office.purchasableMovies().flatMap(\.movies))
    state.isOtherReachable =
      WCSession.default.activationState == .activated && WCSession.default.isReachable
    state.nextShow = state.isPhone ? nil : Complication.movie()
    Handoff.show(state.movie)
    state.code = state.movie.flatMap { office.isPurchased($0) ? QRCode.symbolRows($0) : nil }
    let drawing = ScreenDrawing(
      state, columns: Program.terminalColumns(1) ?? 80, rows: Program.terminalRows(1) ?? 24,
      hasColour: hasColour)
    let lines = drawing.lines.map { $0 + "\u{1B}[K" }
    // No line end after the last line, because the screen would scroll.
    write("\u{1B}[H" + lines.joined(separator: "\r\n") + "\u{1B}[J")
  }

  // MARK: Keys

  private func takeKeys() {
    do {
      let bytes = try Program.read(from: 0, maximumBytes: 256)
      guard !bytes.isEmpty else { end(0) }
      for key in ScreenKey.keys(in: bytes) {
        if let action = state.handle(key) { try perform(action) }
      }
    } catch {
      state.message = "\(error)"
    }
    draw()
  }

  private func perform(_ action: ScreenState.Action) throws {
    switch action {
    case .buy(let movie):
      state.message =
        try TicketOffice.shared.purchase(movie)
        ? "bought \(movie.title)" : "\(movie.title) is bought already"
    case .delete(let movie):
      _ = try TicketOffice.shared.delete(movie)
      state.message = "gave back \(movie.title)"
    case .goOn: state.message = Handoff.goOn()
    case .suspend: suspend()
    case .quit: end(0)
    }
  }
}
