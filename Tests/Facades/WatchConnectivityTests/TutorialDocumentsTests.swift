import Foundation
import Testing
import Wormhole
import WormholePeers
import WormholeSystem
import WormholeTestSupport
import WormholeToolkit

/// The documents of the two tutorials, in a directory beside the checkout; they are not part of this package.
private let documents = Checkout.path("../shared")

private let areThere: Bool = {
  let areThere = FileManager.default.fileExists(atPath: documents + "/tools/seed-code")
  if !areThere { print("skipped: there are no documents of the tutorials in \(documents)") }
  return areThere
}()

/// The code of both tutorials, put together from their own lines, as a phone's process and a watch's.
@Suite("The app of a tutorial", .blocking, .enabled(if: areThere))
struct TutorialDocumentsTests {
  private let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory() }

  // MARK: Building

  /// What the porting pages name.
  private static let imports = [
    "Connectivity.swift": "import Combine\nimport SharedUserDefaults\n",
    "TicketOffice.swift": "import SharedUserDefaults\n",
  ]

  /// - Parameter sides: the conditions in place of `os(iOS)` and `os(watchOS)`, as the porting page advises for code of
  ///   one side; none: each line is as it was.
  private func build(_ tutorial: String, sides: [String] = [""]) throws -> [String] {
    let home = directory.path
    let code = home + "/code/" + tutorial
    if !FileManager.default.fileExists(atPath: code) {
      let tool = documents + "/tools/seed-code"
      let made = try CompilerRun.run([tool, documents + "/seeds", home + "/code"], in: home)
      try #require(made.isBuilt, "\(made.said)")
    }
    let parts = documents + "/tools/seed-parts/"
    let package = ReaderPackage(directory: home)
    let stub = try package.buildModule("SwiftUI", of: parts + "SwiftUI.swift")
    return try sides.map { side in
      let name = tutorial + side
      let folder = "\(home)/\(name)-sources"
      try FileManager.default.createDirectory(
        atPath: folder, withIntermediateDirectories: false)
      for file in try FileManager.default.contentsOfDirectory(atPath: code)
      where file.hasSuffix(".swift") {
        var text = (Self.imports[file] ?? "") + (try ItemText.read("\(code)/\(file)") ?? "")
        if !side.isEmpty {
          text = text.replacing("os(iOS)", with: "PHONE").replacing("os(watchOS)", with: "WATCH")
        }
        try ItemText.write(text, to: "\(folder)/\(file)")
      }
      for (part, file) in [("qr.swift", "qr.swift"), ("driver.swift", "main.swift")] {
        try FileManager.default.copyItem(atPath: parts + part, toPath: "\(folder)/\(file)")
      }
      if !FileManager.default.fileExists(atPath: home + "/Movies.json") {
        try FileManager.default.copyItem(
          atPath: code + "/Movies.json", toPath: home + "/Movies.json")
      }
      let outcome = try package.buildProgram(
        name, of: folder, languageMode: "5", options: stub + (side.isEmpty ? [] : ["-D", side]))
      try #require(outcome.isBuilt, "\(outcome.said)")
      return "\(home)/\(name)"
    }
  }

  // MARK: Playing

  /// One of the two processes, and what it was last asked.
  private struct Side {
    let process: LineProcess

    /// Asks until the answer is as expected.
    func expect(
      _ question: String, _ answer: String, sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
      try expect(question, sourceLocation: sourceLocation) { $0 == answer }
    }

    func expect(
      _ question: String, sourceLocation: SourceLocation = #_sourceLocation,
      _ isExpected: (String) -> Bool
    ) throws {
      var last = ""
      let end = soon
      repeat {
        last = try ask(question)
        if isExpected(last) { return }
        pauseThread(.milliseconds(20))
      } while ContinuousClock.now < end
      Issue.record("\(question): \(last)", sourceLocation: sourceLocation)
    }

    func ask(_ question: String) throws -> String {
      try process.tell(question)
      return try process.line(until: soon)
    }
  }

  private func start(_ program: String, _ role: String, watch: String = "watch") throws -> Side {
    let home = "\(directory.path)/home-\(role == "phone" ? role : watch)"
    try FileManager.default.createDirectory(
      atPath: home + "/Documents", withIntermediateDirectories: true)
    let variables = [
      "WATCHCONNECTIVITY_ROLE=\(role)", "WATCHCONNECTIVITY_WATCH=\(watch)",
      "WORMHOLE_CONTAINER=\(try directory.container().location)", "HOME=\(home)",
      "CFFIXED_USER_HOME=\(home)", "TMPDIR=\(directory.path)", "PATH=/usr/bin:/bin",
    ]
    return Side(process: try LineProcess(program, [], environment: variables, readsErrors: false))
  }

  private static func isReady(_ state: String) -> Bool {
    state.hasPrefix("state 2 ") && state.contains("watchApp true companion true")
  }

  @Test(
    "compiles with two imports, and keeps purchases and deletions in step, also after restarts",
    arguments: ["book", "flipped"])
  func unchanged(tutorial: String) throws {
    let program = try build(tutorial)[0]
    var (phone, watch) = (try start(program, "phone"), try start(program, "watch"))
    try phone.expect("state", Self.isReady)
    try watch.expect("state", Self.isReady)

    #expect(try phone.ask("buy 23415") == "bought")
    try watch.expect("tickets", "tickets [23415]")
    #expect(try watch.ask("buy 31413") == "bought")
    try phone.expect("tickets") { $0.contains("31413") && $0.contains("23415") }
    #expect(try phone.ask("delete 23415") == "deleted")
    try watch.expect("tickets", "tickets [31413]")
    let reply = try phone.ask("send failable reply")
    #expect(reply == "reply [\"verified\": 1] true", "\(reply)")
    try watch.expect("tickets", "tickets [23523]")
    #expect(try phone.ask("buy 34340") == "bought")
    try watch.expect("tickets") { $0.contains("34340") }

    // Neither of them hears of what happens while it does not run.
    try watch.process.end()
    #expect(try phone.ask("delete 34340") == "deleted")
    try phone.process.end()
    watch = try start(program, "watch")
    try watch.expect("tickets", "tickets [31413]")
    phone = try start(program, "phone")
    try phone.expect("tickets", "tickets [31413]")
    #expect(try watch.ask("delete 31413") == "deleted")
    try phone.expect("tickets", "tickets []")
  }

  @Test(
    "sends the picture of a ticket, and goes on with another watch, once its sides are two programs",
    arguments: ["book", "flipped"])
  func sides(tutorial: String) throws {
    let programs = try build(tutorial, sides: ["PHONE", "WATCH"])
    let pairing = Pairing(of: "phone", in: try directory.container())
    try pairing.pair(.init(name: "watch"))
    try pairing.pair(.init(name: "second"))
    let phone = try start(programs[0], "phone")
    let first = try start(programs[1], "watch")
    try phone.expect("state", Self.isReady)
    try first.expect("state", Self.isReady)
    #expect(try first.ask("buy 23523") == "bought")
    try phone.expect("tickets", "tickets [23523]")
    try first.expect("qr", "qr [\"23523.png\"]")

    let second = try start(programs[1], "watch", watch: "second")
    #expect(try pairing.activate("second"))
    try second.expect("state", Self.isReady)
    try phone.expect("state", Self.isReady)
    #expect(try phone.ask("buy 87934") == "bought")
    try second.expect("tickets") { $0.contains("23523") && $0.contains("87934") }
    #expect(try first.ask("tickets") == "tickets [23523]")
    #expect(try second.ask("delete 87934") == "deleted")
    try phone.expect("tickets", "tickets [23523]")
  }
}
