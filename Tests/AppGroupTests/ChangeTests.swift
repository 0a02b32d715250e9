import TestSupport
import Testing

@testable import AppGroup

@Suite("A change")
struct ChangeTests {
  let directory: TemporaryDirectory
  let container: SharedContainer

  init() throws {
    directory = try TemporaryDirectory()
    container = try directory.container()
  }

  @Test("may be read without a limit")
  func noLimit() throws {
    try container.value("k").replace(with: 1)
    #expect(try container.value("k").read(limits: .init(maximumBytes: .max)) == 1)
  }

  @Test("may be updated with a term that has always passed")
  func negativeTerm() throws {
    try container.value("k").update(term: .seconds(Int64.min)) { $0 = 1 }
  }

  @Test("says its version only when it can publish")
  func preparedStamps() throws {
    let scene = try LeaseScene()
    let lease = try scene.acquire(.exclusive)
    let announced = Heard<Stamp>()
    #expect(throws: AppGroupError.self) {
      try scene.value.replace(withBytes: [1], durability: .durable, until: .now) {
        announced.add($0)
      }
    }
    #expect(announced.all.isEmpty)
    lease.end()
  }
}
