import ConnectivityTesting
import Foundation
import WatchConnectivity
import WormholeSystem
import WormholeWorkshop

/// The demonstration: a phone and a watch as two processes on their own container; one sleeps, one
/// is suspended, one is killed.
final class Story {
  private let stage: Stage
  private let cast: StoryCast
  private var checks: [(claim: String, holds: Bool, duration: Duration?)] = []

  private static let africa = 23523
  private static let general = 34340
  private static let royalBed = 77788

  init() throws {
    stage = Stage(hasColour: Colour.isWanted()) { line in
      FileHandle.standardOutput.write(Data((line + "\n").utf8))
    }
    cast = try StoryCast(stage, program: Program.executablePath())
  }

  /// - Returns: Whether every step held.
  func play() throws -> Bool {
    defer { cast.end() }
    try stage.show("CinemaTime: a phone and a watch, two processes that share a directory")
    try purchase()
    try sleep()
    try conflict()
    try transfer()
    try suspension()
    try handOver()
    try close()
    return checks.allSatisfy(\.holds)
  }

  // MARK: Steps

  private func purchase() throws {
    try stage.title("1. A ticket is bought on the phone, and is on the watch")
    let phone = try cast.start(.phone)
    let watch = try cast.start(.watch)
    let bought = try phone.answer("buy \(Self.africa)")
    let duration = try watch.wait(for: "tickets", toShow: "\(Self.africa)")
    try stage.act("watch", "shows it", took: duration)
    try stage.explain("The purchase is one value in the directory; the kernel notifies the watch.")
    check("a ticket bought on one side is shown on the other", bought.hasPrefix("bought"), duration)
    let code = try watch.wait(for: "tickets", toShow: "\(Self.africa) Africa Screams (QR code)")
    try stage.act("watch", "has asked the phone for the QR code, and got a file", took: code)
    check("the watch gets its QR code from the phone", true, code)
  }

  private func sleep() throws {
    try stage.title("2. The watch is asleep while the phone buys three tickets, and wakes")
    try cast.quit(.watch)
    let phone = try cast.side(.phone)
    for id in [31413, 23415, 87934] { _ = try phone.answer("buy \(id)") }
    let watch = try cast.start(.watch)
    let duration = try watch.wait(for: "tickets", toShow: "87934")
    // Each purchase was a guaranteed message with all tickets bought so far.
    let told = try watch.notices("user info says", count: 3)
    try stage.act("watch", "receives \(told.count) purchases in order", took: duration)
    let counts = told.map { $0.split(separator: ",").count }
    check(
      "messages to a sleeping watch arrive in order when it wakes", counts == [2, 3, 4], duration)
  }

  private func conflict() throws {
    try stage.title("3. Both buy the same seat at the same moment; one deletes what the other buys")
    let phone = try cast.side(.phone)
    let watch = try cast.side(.watch)
    let answers = try cast.both("buy \(Self.general)")
    try stage.act("both", answers.joined(separator: "; "))
    check(
      "of two who buy one seat, exactly one gets it",
      answers.count { $0.hasPrefix("bought") } == 1
        && answers.count { $0.hasPrefix("already") } == 1, nil)
    try phone.send("delete \(Self.general)")
    try watch.send("buy \(Self.royalBed)")
    let gone = try phone.receive()
    let bought = try watch.receive()
    try stage.act("both", "\(gone); \(bought)")
    let onPhone = try phone.wait(for: "tickets", toShow: "\(Self.royalBed)")
    _ = try watch.wait(for: "tickets", toShow: "\(Self.general)", isShown: false)
    try stage.explain(
      "If the sides sent whole lists, one of the two changes would be lost. Here each side "
        + "changes the same list in place, one after the other.")
    check(
      "of two changes at the same moment neither is lost",
      gone.hasPrefix("deleted") && bought.hasPrefix("bought"), onPhone)
  }

  private func transfer() throws {
    try stage.title("4. The phone is killed in the middle of sending a QR code, and comes back")
    try cast.quit(.phone)
    try cast.quit(.watch)
    // Its last act is to hand a file to the session: SIGKILL, no clean-up.
    let phone = try cast.start(.phone, endsAfterTransfer: true)
    let watch = try cast.start(.watch)
    _ = try watch.answer("buy 858555")
    let termination = try phone.waitForEnd()
    try stage.act("phone", "is killed by SIGKILL while it sends the file")
    let duration = try watch.wait(
      for: "tickets", toShow: "858555 Something to Sing About (QR code)")
    try stage.act(
      "watch", "asks again, which wakes a phone; that sends the dead one's file", took: duration)
    check(
      "a file arrives although its sender was killed",
      termination == .killed(signal: Signal.kill.rawValue), duration)
    check("the watch wakes a phone that does not run", try cast.isPhoneInBackground(), nil)
  }

  private func suspension() throws {
    try stage.title("5. The watch is suspended and blocks no other process")
    let phone = try cast.start(.phone)
    let watch = try cast.side(.watch)
    try watch.stop()
    try stage.act("watch", "is suspended by SIGSTOP")
    let (duration, answer) = try timed { try phone.answer("buy 99900") }
    try stage.act("phone", answer, took: duration)
    check("a suspended watch blocks no other process", answer.hasPrefix("bought"), duration)
    try watch.resume()
    let caughtUp = try watch.wait(for: "tickets", toShow: "99900 One Body Too Many (QR code)")
    try stage.act("watch", "is continued, and has caught up", took: caughtUp)
    check("a continued watch has missed nothing", true, caughtUp)
  }

  private func handOver() throws {
    try stage.title("6. The film that is open on the watch is opened on the phone")
    try cast.quit(.phone)
    let watch = try cast.side(.watch)
    _ = try watch.answer(lines: "show \(Self.general)")
    try stage.act("watch", "> show \(Self.general)")
    let (duration, line) = try timed { try cast.handOver() }
    try stage.act("user", line, took: duration)
    try cast.waitForPhone(toPrint: "opens The General, continued from watch")
    try stage.act("phone", "is started, and opens it")
    try stage.explain(
      "The watch offers the film for as long as its process lives. What is handed over is one "
        + "value, which the phone takes when it runs.")
    check(
      "the film that is open on the watch is opened on the phone", true, duration)
    try cast.kill(.watch)
    try stage.act("watch", "is killed by SIGKILL")
    let gone = try cast.handOver()
    try stage.act("user", gone)
    check("a dead watch offers nothing", gone == "nothing to continue", nil)
  }

  private func close() throws {
    let phone = try cast.start(.phone)
    let watch = try cast.start(.watch)
    let lists = try [phone, watch].map { try $0.answer(lines: "tickets") }
    for (name, list) in zip(["phone", "watch"], lists) {
      try stage.title("The tickets on the \(name)")
      for line in list { try stage.show("   " + line) }
    }
    check("both sides show the same tickets", lists[0] == lists[1] && lists[0].count == 7, nil)
    try stage.title("A ticket on the watch")
    let code = try watch.answer(lines: "show \(Self.africa)")
    for line in code { try stage.show("   " + line) }
    try cast.quit(.watch)
    try cast.quit(.phone)
    let leftovers = try cast.leftovers()
    check("killed processes have left nothing in the way", leftovers.isEmpty, nil)
    for leftover in leftovers { try stage.show("   left: \(leftover)") }
    try stage.title("What held")
    for check in checks { try stage.check(check.claim, check.holds, took: check.duration) }
  }

  private func timed<Result>(_ body: () throws -> Result) rethrows -> (Duration, Result) {
    let start = ContinuousClock.now
    let result = try body()
    return (ContinuousClock.now - start, result)
  }

  private func check(_ claim: String, _ holds: Bool, _ duration: Duration?) {
    checks.append((claim, holds, duration))
  }
}
