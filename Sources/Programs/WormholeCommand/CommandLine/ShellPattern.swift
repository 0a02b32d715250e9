/// A pattern as in a shell: `*` stands for any text, `?` for one character, and `[a-z]` or `[!a-z]`
/// for one of some characters; `\` takes the next character literally.
///
/// It matches by characters of Unicode, including those that fnmatch(3) without a locale treats as
/// several, and its time grows at most with the product of both lengths, whatever the pattern.
struct ShellPattern: Sendable {
  private enum Part {
    case any
    case one
    case literal(Unicode.Scalar)
    case set([ClosedRange<Unicode.Scalar>], isNegated: Bool)

    func matches(_ scalar: Unicode.Scalar) -> Bool {
      switch self {
      case .any: false
      case .one: true
      case .literal(let literal): literal == scalar
      case .set(let ranges, let isNegated): ranges.contains { $0.contains(scalar) } != isNegated
      }
    }
  }

  private let parts: [Part]

  init(_ text: String) {
    var parts: [Part] = []
    var rest = text.unicodeScalars[...]
    while let scalar = rest.popFirst() {
      switch scalar {
      case "*": parts.append(.any)
      case "?": parts.append(.one)
      case "[": parts.append(Self.takeSet(&rest) ?? .literal(scalar))
      case "\\": parts.append(.literal(rest.popFirst() ?? scalar))
      default: parts.append(.literal(scalar))
      }
    }
    self.parts = parts
  }

  /// Whether a text has a character that stands for others in a pattern.
  static func isMeant(by text: String) -> Bool { text.contains { "*?[".contains($0) } }

  /// Takes the rest of a set; nil without a bracket that ends it, which makes the first one ordinary.
  private static func takeSet(_ rest: inout Substring.UnicodeScalarView) -> Part? {
    var inside = rest
    let isNegated = inside.first == "!" || inside.first == "^"
    if isNegated { inside.removeFirst() }
    var ranges: [ClosedRange<Unicode.Scalar>] = []
    var isFirst = true
    while let scalar = inside.popFirst() {
      if scalar == "]", !isFirst {
        rest = inside
        return .set(ranges, isNegated: isNegated)
      }
      isFirst = false
      let low = scalar == "\\" ? inside.popFirst() ?? scalar : scalar
      var high = low
      if inside.first == "-", let end = inside.dropFirst().first, end != "]" {
        inside.removeFirst(2)
        high = end
      }
      // A range that ends before it begins is empty.
      if low <= high { ranges.append(low...high) }
    }
    return nil
  }

  /// Returns whether the pattern stands for the whole text.
  func matches(_ text: String) -> Bool {
    let scalars = Array(text.unicodeScalars)
    var (part, place) = (0, 0)
    // The last star, and the place up to which it stands for the text.
    var star: (part: Int, place: Int)?
    while place < scalars.count {
      if part < parts.count, case .any = parts[part] {
        star = (part, place)
        part += 1
      } else if part < parts.count, parts[part].matches(scalars[place]) {
        part += 1
        place += 1
      } else if let last = star {
        star = (last.part, last.place + 1)
        (part, place) = (last.part + 1, last.place + 1)
      } else {
        return false
      }
    }
    return parts[part...].allSatisfy { if case .any = $0 { true } else { false } }
  }
}
