package import AppGroup
package import SystemCalls

/// The name of a claim's directory. It describes the owner, so that the description costs no write:
/// `claim-<kind>-<declaration>-<purpose>`.
package struct ClaimName: Hashable, Sendable {
  /// The owner's use of the item.
  package enum Kind: Character, Sendable {
    /// Changes a private copy: readers go on.
    case copying = "w"
    /// Is about to publish its copy: new readers wait.
    case publishing = "p"
    /// Changes the item where it is: readers wait.
    case inPlace = "i"
    /// Shares the item with others, and keeps it from being changed.
    case sharing = "s"

    /// Whether two owners of different purpose may not be there at once.
    func excludes(_ other: Kind) -> Bool {
      switch (self, other) {
      case (.sharing, .sharing), (.sharing, .copying), (.copying, .sharing): false
      default: true
      }
    }
  }

  package let kind: Kind
  /// Whether the contents of the directory are claimed, too.
  let coversContents: Bool
  /// The owner, the beginning of the claim and its longest term.
  let declaration: LeaseDeclaration
  /// Owners of the same purpose are not in each other's way.
  package let purpose: String

  static let prefix = "claim-"
  static let overtakenPrefix = "overtaken-"

  package init(kind: Kind, coversContents: Bool, declaration: LeaseDeclaration, purpose: String) {
    self.kind = kind
    self.coversContents = coversContents
    self.declaration = declaration
    self.purpose = purpose
  }

  /// Reads an entry's name; nil when it is no claim.
  package init?(_ entry: FileName) {
    guard entry.hasPrefix(Self.prefix) else { return nil }
    let fields = entry.text.split(separator: "-", omittingEmptySubsequences: false)
    guard fields.count == 10, let kind = fields[1].first.flatMap({ Kind(rawValue: $0) }),
      ["", "c"].contains(fields[1].dropFirst()),
      let declaration = LeaseDeclaration(
        FileName(bytes: Array(fields[2...8].joined(separator: "-").utf8)))
    else { return nil }
    self.init(
      kind: kind, coversContents: fields[1].count == 2, declaration: declaration,
      purpose: String(fields[9]))
  }

  /// The owner, for the sentences of processes that wait.
  var holder: LeaseHolder { LeaseHolder(identity: declaration.identity, held: declaration.age) }

  package var text: String {
    "\(Self.prefix)\(kind.rawValue)\(coversContents ? "c" : "")-\(declaration.name)-\(purpose)"
  }

  /// The same owner with another use of the item.
  func becoming(_ kind: Kind, coversContents: Bool) -> ClaimName {
    ClaimName(
      kind: kind, coversContents: coversContents, declaration: declaration, purpose: purpose)
  }

  /// The same claim, handed on to another process.
  package func held(by process: ProcessIdentity) -> ClaimName {
    ClaimName(
      kind: kind, coversContents: coversContents, declaration: declaration.held(by: process),
      purpose: purpose)
  }

  /// Whether it may have been handed on to a program that works on the item itself.
  var mayBeHandedOn: Bool { kind == .inPlace || kind == .sharing }

  /// Whether its owner has had it for longer than it said.
  var isPastItsTerm: Bool { (declaration.age ?? .zero) >= declaration.term }

  /// The short form of a purpose identifier in a name.
  package static func purpose(of identifier: String) -> String {
    String(SHA256.hexDigest(of: Array(identifier.utf8)).prefix(16))
  }

  // MARK: The rest of a claim that was taken over

  /// The name that a taker gives it; the late owner looks for this name.
  package func overtaken(by taker: LeaseDeclaration) -> String {
    Self.overtakenPrefix + nonce + "-" + taker.name
  }

  /// The taker, if an entry is the rest of this claim.
  func taker(_ entry: FileName) -> LeaseHolder? {
    let prefix = Self.overtakenPrefix + nonce + "-"
    guard entry.hasPrefix(prefix),
      let taker = LeaseDeclaration(FileName(bytes: Array(entry.bytes.dropFirst(prefix.utf8.count))))
    else { return nil }
    return LeaseHolder(identity: taker.identity, held: nil)
  }

  private var nonce: Substring { declaration.name.split(separator: "-").last ?? "" }
}
