import Foundation
import GroupDefaults
import Testing
import WormholeTestSupport

@Suite("No argument ends the process: defaults", .blocking)
struct ArgumentTests {
  @Test("any key, any value and any suite is taken, or reported")
  func all() throws {
    final class Plain {}
    let scene = try DefaultsScene()
    let defaults = scene.defaults
    var deep: Any = [1]
    for _ in 0..<2_000 { deep = [deep] }
    let values: [Any?] = [
      nil, 1, -1, Int.min, UInt64.max, 1e300, -1e300, Double.nan, Double.infinity, Float.nan, true,
      "",
      "9999999999999999999999", "-", "1e99999", "\0", Data(count: 100_000), Date.distantPast,
      Date(timeIntervalSinceReferenceDate: .nan), Plain(), NSNull(), deep, [Plain()],
      ["a": Plain()],
      [1: 2], URL(fileURLWithPath: "/"), URL(string: "a:b"), Decimal.nan, NSNumber(value: 1.5),
    ]
    for key in ["k", "", ".", "..", "a/b", "\0", "@k", String(repeating: "k", count: 5_000)] {
      for value in values {
        defaults.set(value, forKey: key)
        _ = (defaults.object(forKey: key), defaults.string(forKey: key), defaults.url(forKey: key))
        _ = (
          defaults.integer(forKey: key), defaults.double(forKey: key), defaults.float(forKey: key)
        )
        _ = (defaults.bool(forKey: key), defaults.array(forKey: key), defaults.data(forKey: key))
        _ = (defaults.dictionary(forKey: key), defaults.stringArray(forKey: key))
      }
      defaults.removeObject(forKey: key)
    }
    for name in ["", ".", "..", "a/b", "\0", String(repeating: "s", count: 5_000)] {
      defaults.addSuite(named: name)
      _ = defaults.persistentDomain(forName: name)
      defaults.setVolatileDomain(["a": Plain(), "b": Double.nan], forName: name)
      defaults.removeVolatileDomain(forName: name)
      defaults.removeSuite(named: name)
    }
    defaults.register(defaults: ["a": Plain(), "": 1, "b": deep])
    defaults.set(7, forKey: "seats")
    #expect(defaults.integer(forKey: "seats") == 7)
  }
}
