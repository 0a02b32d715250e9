import FileClaims
import PropertyLists

/// What one process posts to a presenter of another one.
struct PresenterMessage: Sendable {
  enum Subject: Sendable {
    /// A coordinated access is about to begin: a call, answered when the presenter lets it.
    case access([PresenterDemand])
    /// Something was moved: a notice.
    case moved(from: ItemPath, to: ItemPath)
  }

  /// The presenter's identifier.
  let presenter: String
  let subject: Subject
}

extension PresenterMessage {
  private static let maximumDemands = 1_000

  /// - Returns: nil for anything else, because other programs may have written it.
  init?(_ value: PropertyListValue) {
    guard let presenter = value["presenter"]?.stringValue else { return nil }
    self.presenter = presenter
    if let demands = value["demands"]?.arrayValue {
      guard demands.count <= Self.maximumDemands else { return nil }
      subject = .access(demands.compactMap { PresenterDemand($0) })
    } else {
      guard let old = ItemPath(value["movedFrom"]), let new = ItemPath(value["movedTo"]) else {
        return nil
      }
      subject = .moved(from: old, to: new)
    }
  }

  var propertyList: PropertyListValue {
    switch subject {
    case .access(let demands):
      ["presenter": .string(presenter), "demands": .array(demands.map(\.propertyList))]
    case .moved(let old, let new):
      [
        "presenter": .string(presenter), "movedFrom": .string(old.text),
        "movedTo": .string(new.text),
      ]
    }
  }
}

extension ItemPath {
  /// - Returns: nil for anything but an absolute path.
  init?(_ value: PropertyListValue?) {
    guard let text = value?.stringValue, text.utf8.first == UInt8(ascii: "/") else { return nil }
    self.init(text)
  }
}

extension PresenterDemand {
  fileprivate init?(_ value: PropertyListValue) {
    guard let path = ItemPath(value["path"]),
      let kind = value["for"]?.stringValue.flatMap({ AccessKind(rawValue: $0) })
    else { return nil }
    self.init(path: path.text, kind: kind)
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
