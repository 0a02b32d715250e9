import Testing
import WormholeTestSupport

@Suite("The seam between the engines", .blocking)
struct SeamTests {
  @Test("has at most 120 requirements in all")
  func bound() throws {
    let files = try SourceTree.files.get()
    let parts = Seam.parts(
      declaredIn: files.filter { Seam.rooms.contains($0.target) }.map(\.text),
      implementedIn: files.filter { $0.target == Seam.engine }.map(\.text))
    let names = Set(parts.map(\.name))
    // One that an extension implements, one of another room, and one that only another inherits.
    #expect(names.isSuperset(of: ["ContainerEngine", "CallingEngine", "QueueStore", "Located"]))
    // Only a directory has leases.
    #expect(!names.contains("LeaseHome"))
    if let finding = Seam.finding(parts) { Issue.record(Comment(rawValue: finding)) }
  }

  private let declared = SourceText(
    """
    package protocol Place { var path: String { get } }
    package protocol Store<Item>: Place, Sendable where Item: Sendable {
      associatedtype Item
      /// Not a func.
      static var limit: Int { get }
      @available(*, noasync) func read(_ init: Int) throws -> Item?
      subscript(index: Int) -> Item { get set }
      init(_ body: @escaping (_ var: Int) -> Void)
    }
    package protocol Held {}
    package protocol Lease { func end() }
    protocol Inner { func begin() }
    extension Store { func derived() {} }
    """)

  @Test("consists of the protocols to which the other engine conforms")
  func conformances() {
    func parts(_ engine: String) -> [String] {
      Seam.parts(declaredIn: [declared], implementedIn: [SourceText(engine)]).map(\.description)
    }
    #expect(
      parts("final class Key<Item: Lease>: Store { class func a(_ b: Lease) {} }") == [
        "4 Store", "1 Place",
      ])
    #expect(parts("extension Key: Held, Inner where Item: Lease {}") == ["0 Held"])
    #expect(
      parts("protocol Own: Lease {}\nimport struct Glibc.stat\nlet a: Place = b { c }") == [
        "1 Lease"
      ])
    #expect(parts("struct A { private struct B: Place { let c: Lease } }") == ["1 Place"])
    #expect(parts("// struct A: Place {}\nlet a = \"struct A: Place {}\"").isEmpty)
  }

  @Test("is refused with one requirement too many, and with the count of each protocol")
  func excess() throws {
    let parts = Seam.parts(
      declaredIn: [declared], implementedIn: [SourceText("enum A: Store, Lease {}")])
    #expect(Seam.finding(parts, bound: 6) == nil)
    let finding = try #require(Seam.finding(parts, bound: 5))
    #expect(
      finding.contains("6 requirements") && finding.hasSuffix("\n  4 Store\n  1 Lease\n  1 Place"))
  }
}
