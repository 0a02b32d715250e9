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
}
