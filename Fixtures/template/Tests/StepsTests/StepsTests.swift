#if canImport(ConnectivityTesting)
  import ConnectivityTesting
  import Foundation
  import Testing

  @Suite("The phone and the watch") struct StepsTests {
    @Test("lose no steps when the watch is killed in the middle of a message")
    func killed() async throws {
      let scene = try TestScene()
      let phone = try scene.start(SideProcess.built("StepsPhone"), as: .phone)
      let watch = try scene.start(SideProcess.built("StepsWatch"), as: .watch)
      defer { Self.keep(["phone": phone, "watch-killed": watch]) }
      try await phone.line(containing: "watch in reach")

      try phone.tell("30")
      try await watch.line(containing: "count 30 steps?")
      watch.kill()
      try await phone.line(containing: "later")

      let back = try scene.start(SideProcess.built("StepsWatch"), as: .watch)
      defer { Self.keep(["watch-back": back]) }
      try await back.line(containing: "30 steps in all")

      // And as it should be: the watch answers.
      try phone.tell("12")
      try await back.line(containing: "count 12 steps?")
      try back.tell("yes")
      try await phone.line(containing: "counted 42")
      try await scene.end()
    }

    /// Keeps the screens of a test, which ended well or not, in the directory that SCREENS names.
    private static func keep(_ sides: [String: SideProcess]) {
      guard let folder = ProcessInfo.processInfo.environment["SCREENS"] else { return }
      do {
        try FileManager.default.createDirectory(
          atPath: folder, withIntermediateDirectories: true)
        for (name, side) in sides {
          let text = side.output.map { $0 + "\n" }.joined()
          try Data(text.utf8).write(to: URL(filePath: "\(folder)/\(name).txt"))
        }
      } catch {
        Issue.record("the screens cannot be kept: \(error)")
      }
    }
  }
#endif
