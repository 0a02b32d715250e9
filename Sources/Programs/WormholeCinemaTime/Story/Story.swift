import ConnectivityTesting
import Foundation
import WatchConnectivity
import WormholeSystem
import WormholeTerminals

/// The demonstration: a phone and a watch as two processes on their own container; one sleeps, one
/// is suspended, one is killed.
final class Story {
  private let stage: Stage
  private let cast: StoryCast
  private var promises: [(text: String, holds: Bool, duration: Duration?)] = []
  /// The tickets that both sides have at the end.
  private var tickets = 7

  private static let africa = 23523
  private static let general = 34340
  private static let royalBed = 77788

  init() throws {
    stage = Stage(hasColour: Palette.wanted() == .colours) { line in
      FileHandle.standardOutput.write(Data((line + "\n").utf8))
    }
    cast = try StoryCast(stage, program: Program.executablePath())
  }

  /// - Returns: Whether every promise held.
  func play() throws -> Bool {
    defer { cast.end() }
    try stage.show("CinemaTime: a phone and a watch, two processes that share a directory")
    for step in [purchase, sleep, conflict, transfer, suspension, close] { try step() }
    try stage.title("What held")
    for promise in promises { try stage.check(promise.text, promise.holds, took: promise.duration) }
    return promises.allSatisfy(\.holds)
  }

  private func promise(_ text: String, holds: Bool, took duration: Duration? = nil) {
    promises.append((text, holds, duration))
  }

  // MARK: Steps

  private func purchase() throws {
    try stage.title("1. A ticket is bought on the phone, and is on the watch")
    let (phone, watch) = (try cast.start(.phone), try cast.start(.watch))
    let bought = try phone.answer("buy \(Self.africa)")
    let seen = try watch.wait(for: "tickets", toShow: "\(Self.africa)")
    try stage.act("watch", "shows it", took: seen)
    try stage.explain("The purchase is one value in the directory; the kernel notifies the watch.")
    promise(
      "a ticket bought on one side is shown on the other", holds: bought.hasPrefix("bought"),
      took: seen)
    let code = try watch.wait(for: "tickets", toShow: "\(Self.africa) Africa Screams (QR code)")
    try stage.act("watch", "has asked the phone for the QR code, and got a file", took: code)
    promise("the watch gets its QR code from the phone", holds: true, took: code)
    _ = try watch.notices("user info says", count: 1)
  }

  private func sleep() throws {
    try stage.title("2. The watch is asleep while the phone buys three tickets, and wakes")
    try cast.side(.watch).quit()
    for id in [31413, 23415, 87934] { _ = try cast.side(.phone).answer("buy \(id)") }
    let watch = try cast.start(.watch)
    let duration = try watch.wait(for: "tickets", toShow: "87934")
    // Each purchase was a guaranteed message with all tickets bought so far.
    func tickets(_ count: Int) throws -> [Int] {
      try watch.notices("user info says", count: count).map { $0.split(separator: ",").count }
    }
    var counts = try tickets(3)
    // The first message comes again if the watch ended before the session had counted it as handled.
    if counts.first == 1 { counts = Array(try tickets(4).dropFirst()) }
    try stage.act("watch", "receives \(counts.count) purchases in order", took: duration)
    promise(
      "messages to a sleeping watch arrive in order when it wakes", holds: counts == [2, 3, 4],
      took: duration)
  }

  private func conflict() throws {
    try stage.title("3. Both buy the same seat at the same moment; one deletes what the other buys")
    let answers = try cast.both("buy \(Self.general)")
    try stage.act("both", answers.joined(separator: "; "))
    promise(
      "of two who buy one seat, exactly one gets it",
      holds: answers.map { $0.prefix { $0 != " " } }.sorted() == ["already", "bought"])
    let (phone, watch) = (try cast.side(.phone), try cast.side(.watch))
    try phone.send("delete \(Self.general)")
    try watch.send("buy \(Self.royalBed)")
    let (gone, bought) = (try phone.receive(), try watch.receive())
    try stage.act("both", "\(gone); \(bought)")
    let duration = try phone.wait(for: "tickets", toShow: "\(Self.royalBed)")
    _ = try watch.wait(for: "tickets", toShow: "\(Self.general)", isShown: false)
    try stage.explain(
      "If the sides sent whole lists, one of the two changes would be lost. Here each side "
        + "changes the same list in place, one after the other.")
    promise(
      "of two changes at the same moment neither is lost",
      holds: gone.hasPrefix("deleted") && bought.hasPrefix("bought"), took: duration)
  }

  private func transfer() throws {
    try stage.title("4. The phone is killed in the middle of sending a QR code, and comes back")
    try cast.side(.phone).quit()
    try cast.side(.watch).quit()
    // Its last act is to hand a file to the session: SIGKILL, no clean-up.
    let phone = try cast.start(.phone, endsAfterTransfer: true)
    let watch = try cast.start(.watch)
    _ = try watch.answer("buy 858555")
    let end = try phone.process.waitForEnd()
    try stage.act("phone", "is killed by SIGKILL while it sends the file")
    let duration = try watch.wait(
      for: "tickets", toShow: "858555 Something to Sing About (QR code)")
    try stage.act(
      "watch", "asks again; a new phone starts and sends the file", took: duration)
    promise(
      "a file arrives although its sender was killed",
      holds: end == .killed(signal: Signal.kill.rawValue), took: duration)
    // If the file was whole before the kill, the watch has had no reason yet to wake another phone.
    if try !cast.isPhoneInBackground() {
      _ = try watch.answer("buy 4443355")
      tickets += 1
      _ = try watch.wait(for: "tickets", toShow: "4443355 Speak Easily (QR code)")
    }
    promise("the watch wakes a phone that does not run", holds: try cast.isPhoneInBackground())
  }

  private func suspension() throws {
    try stage.title("5. The watch is suspended and blocks no other process")
    let (phone, watch) = (try cast.start(.phone), try cast.side(.watch))
    try watch.process.stop()
    try stage.act("watch", "is suspended by SIGSTOP")
    var answer = ""
    let duration = try ContinuousClock().measure { answer = try phone.answer("buy 99900") }
    try stage.act("phone", answer, took: duration)
    promise(
      "a suspended watch blocks no other process", holds: answer.hasPrefix("bought"),
      took: duration)
    try watch.process.resume()
    let caughtUp = try watch.wait(for: "tickets", toShow: "99900 One Body Too Many (QR code)")
    try stage.act("watch", "is continued, and has caught up", took: caughtUp)
    promise("a continued watch has missed nothing", holds: true, took: caughtUp)
  }

  private func close() throws {
    let sides = [try cast.side(.phone), try cast.side(.watch)]
    let lists = try sides.map { try $0.answer(lines: "tickets") }
    for (name, list) in zip(["phone", "watch"], lists) {
      try stage.title("The tickets on the \(name)")
      for line in list { try stage.show("   " + line) }
    }
    promise(
      "both sides show the same tickets", holds: lists[0] == lists[1] && lists[0].count == tickets)
    try stage.title("A ticket on the watch")
    for line in try sides[1].answer(lines: "show \(Self.africa)") { try stage.show("   " + line) }
    for side in sides { try side.quit() }
    let leftovers = try cast.leftovers()
    promise("killed processes have left nothing in the way", holds: leftovers.isEmpty)
    for leftover in leftovers { try stage.show("   left: \(leftover)") }
  }
}
