import Testing
import WormholeSystem
import WormholeTestSupport

@testable import WormholeToolkit

@Suite("A process that receives its signals", .blocking)
struct SignalReceptionTests {
  @Test("learns the signals and their origin, and is not ended", .ownProcess(.exited(7)))
  func reception() throws {
    // nohup has hang-ups ignored, and a shell the interrupts of what it starts in the background.
    let signals = try SignalReception(of: [.windowChanged, .terminate, .continue])
    #expect(try signals.take().isEmpty)
    #expect(try waitReadable([signals.descriptor], until: .now) == [false])
    for signal in [Signal.terminate, .windowChanged, .windowChanged, .continue] {
      try Program.send(signal, to: Program.processID)
    }
    #expect(try waitReadable([signals.descriptor], until: soon) == [true])
    let expected: [Signal] = [.windowChanged, .terminate, .continue]
    var received: Set<Signal> = []
    try eventually("all are received") {
      for one in try signals.take() where one.isFromProcess { received.insert(one.signal) }
      return received == Set(expected)
    }
    Program.exit(7)
  }

  @Test(
    "is ended by them again after it stops receiving them",
    .ownProcess(.killed(signal: Signal.terminate.rawValue)))
  func end() throws {
    do {
      let signals = try SignalReception(of: [.terminate])
      try Program.send(.terminate, to: Program.processID)
      try eventually("it is received") { try !signals.take().isEmpty }
    }
    try Program.send(.terminate, to: Program.processID)
  }
}
