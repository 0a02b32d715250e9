import Testing
import WormholeTestSupport

@Suite("The checks of comments", .blocking)
struct CommentCheckTests {
  private func unargued(_ text: String) -> [Int] {
    unarguedFindings(in: SourceText(text), path: "F.swift").map(\.line)
  }

  private func undocumented(_ text: String) -> [Int] {
    undocumentedFindings(in: SourceText(text), path: "F.swift").map(\.line)
  }

  @Test(
    "flag what may hide an error, crash or race, with no comment, a far one or an empty one",
    arguments: [
      "try? a()", "let a = try! b()", "final class A: @unchecked Sendable {}",
      "nonisolated(unsafe) var a = 1", "fatalError(\"never\")", "print(\"\\(try? a())\")",
    ])
  func flagged(risk: String) {
    #expect(unargued(risk) == [1])
    #expect(unargued("// It fails only if nobody listens.\n\n" + risk) == [3])
    #expect(unargued("// It fails only if nobody listens.\nb()\n" + risk) == [3])
    #expect(unargued("// TODO: think about this again\n" + risk) == [2])
    #expect(unargued("// MARK: - Things that may fail\n" + risk) == [2])
    #expect(unargued("// swift-format-ignore: because of this\n" + risk) == [2])
    #expect(unargued("// fine\n" + risk) == [2])
    #expect(unargued("let why = \"// this is not a comment\"\n" + risk) == [2])

    #expect(unargued("// It fails only if nobody listens.\n" + risk) == [])
    #expect(unargued("// It fails only\n// if nobody listens.\n" + risk) == [])
    #expect(unargued(risk + "  // It fails only if nobody listens.") == [])
    #expect(unargued("/* It fails only if nobody listens. */\n" + risk) == [])
  }

  @Test(
    "ignore similar code",
    arguments: [
      "// try? a()", "let a = \"try! b\"", "retry?.cancel()", "myfatalError(1)", "try a()?.b()",
      "nonisolated var a = 1", "catch let fatalError",
    ])
  func unflagged(text: String) {
    #expect(unargued(text) == [])
  }

  @Test("find PropertyListSerialization, and numbers of released descriptors, in code only")
  func forbidden() {
    let text = SourceText(
      "/// Not PropertyListSerialization.\nlet a = \"PropertyListSerialization\"\n"
        + "PropertyListSerialization.data()\nlet a = try root.handle().descriptor.rawValue\n"
        + "let handle = try root.handle()\nlet a = handle.descriptor.rawValue\n")
    #expect(
      forbiddenFindings(in: text, path: "F.swift").map(\.line) == [3, 4])
  }

  @Test(
    "flag public declarations without documentation",
    arguments: [
      "public struct A {", "  public let a: Int", "open class A {}", "public static func a() {",
      "@discardableResult public func a()", "public private(set) var a = 1", "public init() {}",
      "public final class A {}", "public class func a()", "public static func make()",
      "public func hash() {}", "public typealias A = B", "public subscript(a: Int) -> Int {",
      "@available(*, deprecated) public func a()", "nonisolated public func a()",
      "public init(fromFile: Int)", "public var descriptionText: Int", "static public var a = 1",
    ])
  func undocumented(declaration: String) {
    #expect(undocumented(declaration) == [1])
    #expect(undocumented("// About a thing.\n" + declaration) == [2])
    #expect(undocumented("///\n" + declaration) == [2])
    #expect(undocumented("/// About a thing.\n\n" + declaration) == [3])
    #expect(undocumented("/// About a thing.\nlet b = 1\n" + declaration) == [3])
    #expect(undocumented("/// About a thing.\n@State var b = 1\n" + declaration) == [3])
    #expect(undocumented("/// About a thing.\nfunc b(\n  c: Int)\n" + declaration) == [4])

    #expect(undocumented("/// About a thing.\n" + declaration) == [])
    #expect(undocumented("/// About a thing.\n///\n" + declaration) == [])
    #expect(undocumented("/// About a thing.\n@frozen\n@inlinable\n" + declaration) == [])
    let attribute = "@available(\n  *, deprecated,\n  message: \"x (y)\"\n)\n"
    #expect(undocumented("/// About a thing.\n" + attribute + declaration) == [])
    #expect(undocumented("/// About.\n// swift-format-ignore: X\n" + declaration) == [])
  }

  @Test(
    "exempt imports, declarations that are not public, and members that a protocol documents",
    arguments: [
      "public import A", "@_exported public import A", "package func a()", "let public1 = 1",
      "public static func == (left: A, right: A) -> Bool {",
      "public func hash(into hasher: inout H)",
      "public var description: String {", "public init(from decoder: any Decoder) throws {",
      "public func encode(to encoder: any Encoder)", "public init(stringLiteral value: String)",
      "public static func < (left: A, right: A) -> Bool {", "private(set) var a = 1",
      "open = OpenSet()", "open(path, flags)", "open.insert(1)",
    ])
  func exempt(declaration: String) {
    #expect(undocumented(declaration) == [])
  }

  @Test("flag public extensions, whose members would escape the check")
  func extensions() {
    #expect(undocumented("/// About a thing.\npublic extension A {") == [2])
  }
}
