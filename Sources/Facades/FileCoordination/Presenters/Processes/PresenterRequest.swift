import FileClaims
import PropertyLists

/// The question of one coordinated access to the presenters of other processes, with their answers.
struct PresenterRequest: Sendable, Equatable {
  enum Subject: Sendable, Equatable {
    case access([PresenterDemand])
    /// Needs no answer but to be taken note of.
    case moved(from: String, to: String)
  }

  enum Answer: Sendable, Equatable {
    case asked
    case given
    case refused(String)
  }

  /// The coordinator, as it is present.
  let coordinator: String
  let subject: Subject
  /// By the presenter's identifier.
  var answers: [String: Answer]
}

extension PresenterRequest {
  private static let maximumDemands = 1_000
  private static let maximumAnswers = 10_000

  /// - Returns: nil for anything but a request: other programs may have written it.
  init?(_ value: PropertyListValue) {
    guard let coordinator = value["coordinator"]?.stringValue,
      let subject = Self.subject(value),
      let answers = value["presenters"]?.dictionaryValue, answers.count <= Self.maximumAnswers
    else { return nil }
    self.coordinator = coordinator
    self.subject = subject
    self.answers = answers.compactMapValues { Answer($0) }
  }

  var propertyList: PropertyListValue {
    var value: PropertyListValue = [
      "coordinator": .string(coordinator),
      "presenters": .dictionary(answers.mapValues(\.propertyList)),
    ]
    switch subject {
    case .access(let demands): value["demands"] = .array(demands.map(\.propertyList))
    case .moved(let old, let new):
      value["movedFrom"] = .string(old)
      value["movedTo"] = .string(new)
    }
    return value
  }

  private static func subject(_ value: PropertyListValue) -> Subject? {
    if let demands = value["demands"]?.arrayValue {
      guard demands.count <= maximumDemands else { return nil }
      return .access(demands.compactMap { PresenterDemand($0) })
    }
    guard let old = value["movedFrom"]?.stringValue, let new = value["movedTo"]?.stringValue,
      [old, new].allSatisfy({ $0.utf8.first == UInt8(ascii: "/") })
    else { return nil }
    return .moved(from: old, to: new)
  }
}

extension PresenterRequest.Answer {
  fileprivate init?(_ value: PropertyListValue) {
    guard case .string(let text) = value else { return nil }
    switch text {
    case "asked": self = .asked
    case "given": self = .given
    default:
      guard text.hasPrefix("refused: ") else { return nil }
      self = .refused(String(text.dropFirst("refused: ".count)))
    }
  }

  fileprivate var propertyList: PropertyListValue {
    switch self {
    case .asked: "asked"
    case .given: "given"
    case .refused(let reason): .string("refused: " + reason)
    }
  }
}

extension PresenterDemand {
  fileprivate init?(_ value: PropertyListValue) {
    guard let path = value["path"]?.stringValue, path.utf8.first == UInt8(ascii: "/") else {
      return nil
    }
    guard let kind = value["for"]?.stringValue.flatMap({ AccessKind(rawValue: $0) }) else {
      return nil
    }
    self.init(path: path, kind: kind)
  }

  fileprivate var propertyList: PropertyListValue {
    // A lock is announced as what it means to presenters, which all versions of this package read.
    let announced: AccessKind =
      switch kind {
      case .locking: .content
      case .sharing: .reading
      default: kind
      }
    return ["path": .string(path), "for": .string(announced.rawValue)]
  }
}
