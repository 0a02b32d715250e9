import Wormhole
import WormholeInspection
import WormholePropertyLists
import WormholeSystem

/// ```
/// copy PLACE                       copies the container
/// copy-history COUNT [RATE]        makes the changes 1, 2, … without end, RATE in a second: 5, 105, 205, …
///                                  go into the queue "history", 10, 20, … to the log "history"; any other sets
///                                  the value "history-R" to its number, with its rest R by COUNT
/// copy-pause WORD                  holds changes back as a copier does; answers "holding" and reads a line
/// ```
enum CopyVerbs {
  static func perform(
    _ verb: String, _ key: String, _ rate: Int64, _ container: SharedContainer
  ) throws {
    switch verb {
    case "copy-history": try history(Int64(key) ?? 1, rate, container)
    case "copy-pause": try pause(container)
    default: _ = try ContainerCopy(of: container).run(to: key, until: .now + .seconds(100))
    }
  }

  private static func history(
    _ count: Int64, _ rate: Int64, _ container: SharedContainer
  ) throws {
    let log = container.log("history")
    let sender = try container.queue("history").sender("history")
    var number: Int64 = 0
    var due = ContinuousClock.now
    while true {
      number += 1
      switch number {
      case _ where number % 10 == 0: try log.append(.integer(number))
      case _ where number % 100 == 5: try sender.enqueue(.integer(number))
      default:
        try container.value("history-\(number % count)").replace(with: .integer(number))
      }
      guard rate > 1 else { continue }
      due += .seconds(1) / Int(rate)
      let pause = ContinuousClock.now.duration(to: due)
      if pause > .zero { pauseThread(pause) }
    }
  }

  private static func pause(_ container: SharedContainer) throws {
    let pause = try CopyPause(
      in: container.root, at: container.root.handle().descriptor.rawValue)
    try pause.run {
      try Program.write(Array("holding\n".utf8), to: 1)
      _ = readLine()
    }
    pause.end()
  }
}
