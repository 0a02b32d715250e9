import Testing
import WormholeSystem
import WormholeTestSupport
import WormholeToolkit

/// Code whose isolation the compiler relies on without a diagnostic; see the targets
/// `CinemaTutorial` and `MainActorApp`, and `SwiftSixModel`.
@Suite("Isolation", .blocking)
struct IsolationTests {
  // The handlers used to run on the session's queue: this process then traps.
  @Test(
    "is kept: handlers of the main actor run there, in the order of the replies",
    arguments: ["five", "six", "default"])
  func handlers(app: String) throws {
    let scene = try SessionScene()
    let phone = try scene.phone()
    let watch = try Participant(scene.directory.path)
    let heard = try watch.session("isolated \(app) 20").split(separator: " ").map(String.init)
    #expect(heard.compactMap { Int($0) }.filter { $0 > 0 }.prefix(20).elementsEqual(1...20))
    #expect(heard.contains("byte") && heard.count { $0 == "refused" } == 2, "\(heard)")
    withExtendedLifetime(phone) {}
  }

  @Test("is not possible for a delegate: the compiler refuses one of the main actor")
  func delegates() throws {
    let directory = try TemporaryDirectory()
    let modules = try BuiltProgram.modules()
    func errors(_ methods: String) throws -> String {
      let source = directory.path + "/delegate.swift"
      try Files.write(
        """
        import Foundation
        import WatchConnectivity
        @MainActor final class Delegate: NSObject, WCSessionDelegate {
          \(methods) func session(
            _ session: WCSession, activationDidCompleteWith state: WCSessionActivationState,
            error: (any Error)?
          ) {}
        }
        """, to: source)
      let command =
        "swiftc -typecheck -swift-version 6 -default-isolation MainActor -I '\(modules)' "
        + "-Xcc '-fmodule-map-file=\(Checkout.path)/Sources/Core/WormholeShims/module.modulemap' "
        + "'\(source)' 2>&1; echo over"
      let compiler = try LineProcess(
        "sh", ["-c", command],
        environment: CompilerRun.environment(leavingFilesIn: directory.path))
      let deadline = CompilerRun.deadline
      var text = ""
      while !text.hasSuffix("over\n") {
        text += try compiler.text(until: deadline)
      }
      return text.split(separator: "\n").filter { $0.contains(" error: ") }.joined(separator: "\n")
    }
    #expect(try errors("").contains("crosses into main actor-isolated code"))
    #expect(try errors("nonisolated") == "")
  }
}
