import ConnectivityTesting
import Foundation
import Testing
import WatchConnectivity
import WormholeSystem
import WormholeTestSupport

@testable import WormholeCinemaTime

/// A phone and a watch as processes, driven through their standard input.
@Suite("A phone and a watch", .blocking)
struct SidesTests {
  private let cast: StoryCast

  let place: TemporaryDirectory

  init() throws {
    place = try TemporaryDirectory()
    cast = try StoryCast(in: place)
  }

  private static let films = Movie.all.map(\.id)

  @Test(
    "show a ticket on both sides when one buys it, and return it on both", .bothEngines)
  func buying() throws {
    defer { cast.end() }
    let phone = try cast.start(.phone)
    let watch = try cast.start(.watch)
    #expect(try phone.answer("buy 23523") == "bought 23523 Africa Screams")
    _ = try watch.wait(for: "tickets", toShow: "23523 Africa Screams (QR code)")
    #expect(try watch.answer("buy 23523") == "already bought 23523 Africa Screams")
    #expect(try cast.codes() == ["23523.txt"])
    #expect(try watch.answer("delete 23523") == "deleted 23523 Africa Screams")
    // The watch may have asked for the code twice, and the second one may come only now.
    try eventually("no code is left") { try cast.codes().isEmpty }
    _ = try phone.wait(for: "tickets", toShow: "no tickets")
    #expect(try phone.answer("delete 23523") == "no ticket for 23523 Africa Screams")
  }

  @Test("remove a ticket's QR code when the phone gives it back", .bothEngines)
  func deletingOnThePhone() throws {
    defer { cast.end() }
    let phone = try cast.start(.phone)
    let watch = try cast.start(.watch)
    _ = try phone.answer("buy 34340")
    _ = try watch.wait(for: "tickets", toShow: "34340 The General (QR code)")
    _ = try phone.answer("delete 34340")
    _ = try watch.wait(for: "tickets", toShow: "no tickets")
    try eventually("no code is left") { try cast.codes().isEmpty }
  }

  @Test("lose no purchase that both make at the same moment, and sell no seat twice", .bothEngines)
  func conflict() throws {
    defer { cast.end() }
    let phone = try cast.start(.phone)
    let watch = try cast.start(.watch)
    for id in Self.films {
      let answers = try cast.both("buy \(id)")
      #expect(answers.count { $0.hasPrefix("bought") } == 1, "\(answers)")
      #expect(answers.count { $0.hasPrefix("already") } == 1, "\(answers)")
    }
    for side in [phone, watch] {
      _ = try side.wait(for: "list", toShow: "no films left")
    }
  }

  @Test(
    "keep the tickets when both are restarted, even after they were killed", .bothEngines)
  func restart() throws {
    defer { cast.end() }
    for id in [23523, 34340] {
      _ = try cast.start(.phone).answer("buy \(id)")
      try cast.kill(.phone)
    }
    let watch = try cast.start(.watch)
    _ = try watch.wait(for: "tickets", toShow: "34340 The General (QR code)")
    try cast.kill(.watch)
    let lines = try cast.start(.watch).answer(lines: "tickets")
    #expect(lines.map { String($0.prefix(11)) } == ["15:00 23523", "17:00 34340"])
  }

  @Test("start a phone that does not run when the watch needs it")
  func wakingThePhone() throws {
    defer { cast.end() }
    let watch = try cast.start(.watch)
    _ = try watch.answer("buy 77788")
    _ = try watch.wait(for: "tickets", toShow: "77788 The Royal Bed (QR code)")
  }

  @Test("get the QR code although the phone was killed while it sent the file")
  func killedInTransfer() throws {
    defer { cast.end() }
    let phone = try cast.start(.phone, endsAfterTransfer: true)
    let watch = try cast.start(.watch)
    _ = try watch.answer("buy 99900")
    #expect(try phone.process.waitForEnd() == .killed(signal: Signal.kill.rawValue))
    _ = try watch.wait(for: "tickets", toShow: "99900 One Body Too Many (QR code)")
  }

  @Test("show the next show on the watch's face", .bothEngines)
  func complication() throws {
    defer { cast.end() }
    let phone = try cast.start(.phone)
    let watch = try cast.start(.watch)
    _ = try phone.answer("buy 34340")
    _ = try watch.wait(for: "state", toShow: "complication 17:00 The General")
    _ = try phone.answer("delete 34340")
    _ = try watch.wait(for: "state", toShow: "complication none")
  }

  @Test("tolerate numbers that are not in the programme, and do not send them back and forth")
  func unknownNumbers() throws {
    defer { cast.end() }
    let phone = try cast.start(.phone)
    let watch = try cast.start(.watch)
    #expect(try phone.answer("buy 1").hasPrefix("error: no film has the number '1'"))
    #expect(try phone.answer("buy x").hasPrefix("error: no film has the number 'x'"))
    try cast.put([1, 34340, 2])
    for side in [phone, watch] {
      _ = try side.wait(for: "tickets", toShow: "34340 The General (QR code)")
    }
    #expect(try watch.answer("buy 23523").hasPrefix("bought"))
    #expect(try cast.purchased() == [1, 34340, 2, 23523])
  }

  @Test("are not blocked by a suspended side, which misses nothing itself", .bothEngines)
  func suspension() throws {
    defer { cast.end() }
    let phone = try cast.start(.phone)
    let watch = try cast.start(.watch)
    try watch.process.stop()
    for id in Self.films.prefix(2) { #expect(try phone.answer("buy \(id)").hasPrefix("bought")) }
    try watch.process.resume()
    _ = try watch.wait(for: "tickets", toShow: "\(Self.films[1])")
  }

  @Test("answer unknown commands, and end at the end of their input")
  func ending() throws {
    defer { cast.end() }
    let phone = try cast.start(.phone)
    #expect(try phone.answer("sing").hasPrefix("error: there is no 'sing'"))
    try phone.quit()
  }
}
