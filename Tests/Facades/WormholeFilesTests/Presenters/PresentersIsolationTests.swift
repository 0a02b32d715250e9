import Testing
import WormholeSystem
import WormholeTestSupport
import WormholeToolkit

/// Callbacks come from other threads. A conformance that is isolated to the main actor would make
/// them run there without a diagnostic.
@Suite("A presenter of the main actor", .blocking)
struct PresentersIsolationTests {
  // The settings of new apps in Xcode: everything is isolated to the main actor by default.
  private static let options =
    "-typecheck -swift-version 6 -default-isolation MainActor"
    + " -enable-upcoming-feature InferIsolatedConformances"

  /// Returns the compiler's diagnostics for a source; empty if there are none.
  private func compiled(_ source: String) throws -> String {
    let directory = try TemporaryDirectory()
    let file = directory.path + "/Presenter.swift"
    let imports = "import Dispatch\nimport WormholeFiles\nimport Foundation\n"
    try FileDescriptor.open(file, [.writeOnly, .create]).writeAll(Array((imports + source).utf8))
    let modules = try BuiltProgram.modules()
    let command = """
      swiftc \(Self.options) -I '\(modules)' \
      -Xcc -fmodule-map-file='\(Checkout.path)/Sources/Core/WormholeShims/module.modulemap' \
      -module-cache-path '\(directory.path)/cache' '\(file)' >'\(directory.path)/said' 2>&1
      """
    let compiler = try ChildProcess(
      "sh", ["-c", command],
      environment: CompilerRun.environment(leavingFilesIn: directory.path))
    let end = try compiler.wait(until: CompilerRun.deadline)
    let said = try ItemText.read(directory.path + "/said") ?? ""
    #expect(end == .exited(said.contains("error:") ? 1 : 0), "\(said)")
    return said
  }

  private func presenter(_ head: String, _ callback: String) -> String {
    """
    \(head) {
      nonisolated let presentedItemURL: URL? = nil
      nonisolated var presentedItemQueue: DispatchQueue { .main }
      var changes = 0
      \(callback)
    }
    """
  }

  @Test(
    "whose callbacks are isolated to it does not compile, in any spelling",
    arguments: [
      ("final class Model: FilePresenter", "Sendable"),
      ("@MainActor final class Model: FilePresenter", "ConformanceIsolation"),
      ("@MainActor final class Model: @MainActor FilePresenter", "IsolatedConformances"),
    ])
  func refused(_ head: String, _ reason: String) throws {
    let said = try compiled(presenter(head, "func presentedItemDidChange() { changes += 1 }"))
    #expect(said.contains("error:") && said.contains(reason), "\(said)")
  }

  @Test("whose callbacks are nonisolated compiles")
  func accepted() throws {
    let callback =
      "nonisolated func presentedItemDidChange() { MainActor.assumeIsolated { changes += 1 } }"
    #expect(
      try compiled(presenter("@MainActor final class Model: FilePresenter", callback)) == "")
  }
}
