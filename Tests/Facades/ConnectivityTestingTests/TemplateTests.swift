import Foundation
import Testing
import WormholeTestSupport

@Suite("The template of a repository", .blocking)
struct TemplateTests {
  private static let root = Checkout.path("Fixtures/template")

  @Test("builds without a warning, passes its test, and keeps the screens of both sides")
  func passes() throws {
    let directory = try TemporaryDirectory()
    let package = ReaderPackage(directory: directory.path)
    for side in ["StepsPhone", "StepsWatch"] {
      let outcome = try package.buildProgram(side, of: Self.root + "/Sources/" + side)
      try #require(outcome.isBuilt, "\(outcome.said)")
    }
    let outcome = try package.buildTests("StepsTests", of: Self.root + "/Tests/StepsTests")
    try #require(outcome.isBuilt, "\(outcome.said)")
    let screens = directory.path + "/screens"
    let run = try package.run("StepsTests", environment: ["SCREENS=" + screens])
    #expect(run.isBuilt && run.said.contains("with 1 test in 1 suite passed"), "\(run.said)")
    #expect(
      try FileManager.default.contentsOfDirectory(atPath: screens).sorted()
        == ["phone.txt", "watch-back.txt", "watch-killed.txt"])
  }
}
