import ConnectivityTesting
import Foundation
import Testing
import WatchConnectivity
import Wormhole
import WormholePeers
import WormholePropertyLists
import WormholeTestSupport

@testable import WormholeCinemaTime

/// The elements of the tutorial's app, each driven by lines; where the content of a message matters, this
/// process plays the other side.
@Suite("Each element of the tutorial's app is driven by lines:", .blocking)
struct ElementsTests {
  /// An element, and what shows it.
  struct Element: Sendable, CustomTestStringConvertible {
    let name: String
    let show: @Sendable (ElementScene) throws -> Void
    var testDescription: String { name }

    init(_ name: String, _ show: @escaping @Sendable (ElementScene) throws -> Void) {
      self.name = name
      self.show = show
    }
  }

  static let elements = catalogue + office + connection + messages + codes + views

  @Test("all of them", arguments: elements)
  func element(_ element: Element) throws {
    let scene = try ElementScene()
    defer { scene.end() }
    try element.show(scene)
  }

  private static let catalogue = [
    Element("Movies.json: both sides have the same nine films") { scene in
      let (phone, watch) = (try scene.phone(), try scene.watch())
      let films = try phone.answer(lines: "list")
      #expect(try films.count == 9 && watch.answer(lines: "list") == films)
    },
    Element("Movie: the hour as text, and the order of the shows") { scene in
      let hours = try scene.phone().answer(lines: "list").map { Int($0.prefix { $0 != ":" }) ?? 0 }
      #expect(hours == hours.sorted())
      #expect(try scene.cast.side(.phone).answer(lines: "list").allSatisfy { $0.contains(":00 ") })
    },
  ]

  private static let office = [
    Element("TicketOffice.init: only films of the programme, in its order") { scene in
      try scene.cast.put([34340, 1, 23523])
      let tickets = try scene.phone().answer(lines: "tickets").map { $0.split(separator: " ")[1] }
      #expect(tickets == ["23523", "34340"])
    },
    Element("isPurchased") { scene in
      let phone = try scene.phone()
      #expect(try phone.answer(lines: "show 23523").contains("no ticket"))
      _ = try phone.answer("buy 23523")
      #expect(try !phone.answer(lines: "show 23523").contains("no ticket"))
    },
    Element("purchase: twice is one ticket, and is reported once") { scene in
      let watch = try scene.played(.watch)
      let phone = try scene.phone()
      #expect(try phone.answer("buy 23523").hasPrefix("bought"))
      #expect(try phone.answer("buy 23523").hasPrefix("already bought"))
      _ = try phone.answer("buy 34340")
      #expect(try watch.purchases(2) == [[23523], [23523, 34340]])
    },
    Element("purchasableMovies: a film that the other side buys leaves the list") { scene in
      let (phone, watch) = (try scene.phone(), try scene.watch())
      _ = try watch.answer("buy 23523")
      _ = try phone.wait(for: "list", toShow: "23523", isShown: false)
      #expect(try phone.answer(lines: "list").count == 8)
    },
    Element("updateCompanion: numbers only, and from the watch the wanted codes") { scene in
      let phone = try scene.played(.phone, script: [.answer(["verified": true])])
      let watch = try scene.watch()
      _ = try watch.answer("buy 23523")
      #expect(
        try phone.message { $0["purchased"] == [23523] } == [
          "purchased": [23523], "qrCodes": [23523],
        ])
    },
    Element("updateCompanion: a code that did not come is wanted again") { scene in
      let phone = try scene.played(.phone, script: [.answer(["verified": true])])
      let watch = try scene.watch()
      _ = try watch.answer("buy 23523")
      _ = try watch.answer("buy 34340")
      #expect(
        try phone.message { $0["purchased"] == [23523, 34340] }?["qrCodes"] == [23523, 34340])
    },
    Element("updates from the other side are not sent back") { scene in
      let watch = try scene.played(.watch)
      let phone = try scene.phone()
      try scene.cast.put([23523])
      try watch.transferUserInfo(["purchased": [23523]])
      _ = try phone.notices("user info says", count: 1)
      _ = try phone.wait(for: "tickets", toShow: "23523")
      _ = try phone.answer("buy 34340")
      #expect(try watch.purchases(1) == [[23523, 34340]])
    },
    Element("unknown numbers do no harm") { scene in
      let watch = try scene.played(.watch)
      let phone = try scene.phone()
      try watch.transferUserInfo(["purchased": [1, 2], "qrCodes": [1]])
      _ = try phone.notices("user info says [1, 2]", count: 1)
      #expect(try phone.answer(lines: "tickets") == ["no tickets"])
      #expect(try phone.allNotices("QR code").isEmpty)
    },
  ]

  private static let connection = [
    Element("Connectivity.shared: supported, a delegate, activated once") { scene in
      let phone = try scene.phone()
      #expect(try phone.answer("state").hasPrefix("activation activated"))
      #expect(try phone.allNotices("session is active").count == 1)
    },
    Element("sessionDidDeactivate: activates with the other watch") { scene in
      let watch = try scene.played(.watch)
      let phone = try scene.phone()
      let other = try watch.comeBack(as: "left")
      defer { other.leave() }
      _ = try phone.notices("session is active", count: 2)
      #expect(
        try phone.allNotices("session is").map { $0.split(separator: " ").last } == [
          "active", "inactive", "deactivated", "active",
        ])
      _ = try phone.wait(for: "state", toShow: "reachable true")
    },
    Element("canSendToPeer: without the app nothing is sent, which is said once") { scene in
      let watch = try scene.played(.watch)
      try watch.setAppInstalled(false)
      let phone = try scene.phone()
      _ = try phone.answer("buy 23523")
      try watch.setAppInstalled(true)
      _ = try phone.wait(for: "state", toShow: "app installed true")
      _ = try phone.answer("buy 34340")
      #expect(try watch.purchases(1) == [[23523, 34340]])
      #expect(try phone.allNotices("does not have the app").count == 1)
    },
    Element("ConnectivityUserInfoKey: purchased, qrCodes, verified") { scene in
      let watch = try scene.played(.watch)
      _ = try scene.phone()
      #expect(
        try watch.sendMessage(["purchased": [23523], "qrCodes": [23523]]) == ["verified": true])
      let file = try watch.next(.file)
      #expect(file.value == ["qrCodes": 23523])
    },
    Element("Delivery.guaranteed: three to a sleeping watch arrive in order") { scene in
      let phone = try scene.phone()
      for id in [23523, 34340, 31413] { _ = try phone.answer("buy \(id)") }
      #expect(try scene.played(.watch).purchases(3).map(\.count) == [1, 2, 3])
    },
  ]

  private static let messages = [
    Element("didReceiveMessage with a reply: from a watch that begins, and that buys") { scene in
      let (phone, watch) = (try scene.phone(), try scene.watch())
      _ = try phone.notices("phone: question says []", count: 1)
      _ = try watch.notices("the phone has verified it", count: 1)
      _ = try watch.answer("buy 23523")
      _ = try phone.notices("phone: question says [23523]", count: 1)
    },
    Element("a message without an answer: the watch says so, and asks three times") { scene in
      let watch = try scene.watch()
      _ = try watch.notices("the phone has verified it", count: 1)
      try scene.cast.forgetPhone()
      _ = try watch.answer("buy 23523")
      _ = try watch.notices("the phone did not answer:", count: 3)
    },
  ]

  private static let codes = [
    Element("update(from:): the codes first, also without tickets") { scene in
      let watch = try scene.played(.watch)
      let phone = try scene.phone()
      #expect(try watch.sendMessage(["qrCodes": [34340]]) == ["verified": true])
      #expect(try watch.next(.file).value == ["qrCodes": 34340])
      _ = try watch.sendMessage(["qrCodes": [23523], "purchased": [23523]])
      _ = try phone.notices("question says", count: 1)
      let order = try phone.allNotices("23523").map { $0.contains("sends the QR code") }
      #expect(order == [true, false])
    },
    Element("sendQrCodes: a picture for each number that is a film's") { scene in
      let watch = try scene.played(.watch)
      _ = try scene.phone()
      _ = try watch.sendMessage(["qrCodes": [1, 23523, 2, 34340]])
      for id in [23523, 34340] {
        let file = try watch.next(.file)
        #expect(file.value == ["qrCodes": .integer(Int64(id))])
        #expect(file.fileName?.hasSuffix(".txt") == true)
        let code = try #require(Movie.of(id).flatMap { QRCode($0.ticket) })
        #expect(file.fileContent == Data(code.lines.map { $0 + "\n" }.joined().utf8))
      }
    },
    Element("didReceive file: moved at once, or gone") { scene in
      let phone = try scene.played(.phone, script: [.answer(["verified": true])])
      try scene.cast.put([23523])
      let watch = try scene.watch()
      let file = URL(filePath: scene.place.path + "/code")
      try Data("code".utf8).write(to: file)
      let without = try phone.transferFile(file)
      let with = try phone.transferFile(file, metadata: ["qrCodes": 23523])
      _ = try watch.notices("received the QR code of 23523", count: 1)
      for transfer in [without, with] {
        #expect(try transfer.finalStatus(until: soon) == .processed)
      }
      #expect(try scene.cast.codes() == ["23523.txt"])
    },
    Element("QRCode.generate: only the phone; the watch shows a placeholder until then") { scene in
      _ = try scene.played(.phone, script: [.answer(["verified": true])])
      let watch = try scene.watch()
      _ = try watch.answer("buy 23523")
      #expect(try watch.answer(lines: "show 23523").contains(TicketCodes.placeholder))
      #expect(try watch.answer(lines: "tickets")[0].hasSuffix("(QR code missing)"))
      scene.leave()
      let phone = try scene.phone()
      #expect(try !phone.answer(lines: "show 23523").contains(TicketCodes.placeholder))
    },
  ]

  private static let views = [
    Element("the views: the phone has more to show") { scene in
      let (phone, watch) = (try scene.phone(), try scene.watch())
      let (long, short) = (
        try phone.answer(lines: "show 34340"), try watch.answer(lines: "show 34340")
      )
      #expect(long.count == 5 && short.count == 3)
      #expect(long.contains { $0.contains("Buster Keaton") && $0.hasPrefix("with ") })
      #expect(!short.contains { $0.contains("Buster Keaton") })
    }
  ]
}
