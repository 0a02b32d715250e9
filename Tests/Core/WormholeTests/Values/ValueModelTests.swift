import Observation
import Synchronization
import Testing
import Wormhole
import WormholePropertyLists
import WormholeTestSupport

@Suite("A model that follows a value", .blocking, .bothEngines)
struct ValueModelTests {
  let directory: TemporaryDirectory
  let container: SharedContainer

  init() throws {
    directory = try TemporaryDirectory()
    container = try directory.container()
  }

  // A program's own models beside the library: its public names must not hide those of Observation.
  @MainActor @Observable final class Screen {
    var title = ""
  }

  /// Waits until the model's content satisfies a condition, as a view does: it learns of each
  /// change, and does not look in between.
  @MainActor
  private func follow(
    _ model: ValueModel<Int>, until condition: @MainActor () -> Bool
  ) async {
    while true {
      let (changes, changed) = AsyncStream<Void>.makeStream()
      // In one step: a change between a look and the beginning of the tracking would not be
      // reported.
      if withObservationTracking(condition, onChange: { changed.yield() }) { return }
      // The change is made after it is reported, and before the main actor goes on here.
      for await _ in changes { break }
      guard !Task.isCancelled else { return }
    }
  }

  @Test("reports to its observers what other processes write", .timeLimit(.minutes(1)))
  @MainActor
  func follows() async throws {
    let value = container.value("seats", as: Int.self)
    let model = try ValueModel(value)
    let other = try Participant(directory.path)
    for number in 1...3 {
      try other.tell("set seats \(number)")
      await follow(model) { model.content == number }
    }
    try await value.value.remove()
    await follow(model) { model.content == nil }
    let screen = Screen()
    screen.title = "seats"
    #expect(screen.title == "seats" && model.failure == nil)
  }

  @Test("keeps the content before one that it cannot read, and says why", .timeLimit(.minutes(1)))
  @MainActor
  func failures() async throws {
    let value = container.value("seats", as: Int.self)
    try await value.replace(with: 1)
    let model = try ValueModel(value)
    await follow(model) { model.content == 1 }
    try await value.value.replace(with: "none")
    await follow(model) { model.failure != nil }
    #expect(model.content == 1 && "\(String(describing: model.failure))".contains("shape"))
    try await value.replace(with: 2)
    await follow(model) { model.failure == nil && model.content == 2 }
  }

  @Test("ends with its last user", .timeLimit(.minutes(1)))
  @MainActor
  func ends() async throws {
    let value = container.value("seats", as: Int.self)
    var model: ValueModel<Int>? = try ValueModel(value)
    weak let weakModel = model
    try await value.replace(with: 1)
    model = nil
    while weakModel != nil { await Task.yield() }
  }
}
