import Testing
import WormholeSystem
import WormholeTestSupport

@testable import Wormhole
@testable import WormholeInspection

@Suite("A container with many names", .blocking)
struct ManyNamesTests {
  @Test("is reported name by name in order, and a value that the report does not need is not kept")
  func keeps() throws {
    let directory = try TemporaryDirectory()
    let container = try directory.container()
    let long = "m" + String(repeating: "/", count: 200)
    for name in ["b", "a", "Z", "é", "a b", long] { try container.value(name).replace(with: 1) }
    try makeDirectory("\(container.root.path)/values/c")
    try ItemText.write("no list", to: "\(container.root.path)/values/c/value.plist")

    var names: [String] = []
    let report = try container.report(
      ReportScope(
        .names,
        keeps: { value in
          names.append(value.identifier)
          return value.problem != nil
        }))

    #expect(names == ["Z", "a", "a b", "b", "c", long, "é"])
    #expect(report.names.values.map(\.identifier) == ["c"])
    #expect(report.names.left == 6)
  }

  @Test("has one copy of the rows that describe its names")
  func rows() throws {
    let directory = try TemporaryDirectory()
    let root = try directory.container().root
    let places = [root.parts(of: .value), root.parts(of: .value)].map { rows in
      rows.withUnsafeBufferPointer { Int(bitPattern: $0.baseAddress) }
    }
    #expect(places[0] == places[1])
  }
}
