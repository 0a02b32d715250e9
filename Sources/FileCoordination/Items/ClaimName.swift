import AppGroup
import SystemCalls

/// What a claim says of its owner, in the name of its directory, so that saying so costs no write:
/// `claim-<kind>-<declaration>-<purpose>`.
struct ClaimName: Hashable, Sendable {
  /// What the owner does with the item.
  enum Kind: Character, Sendable {
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

  let kind: Kind
  /// Whether what is in the directory is claimed, too.
  let coversContents: Bool
  /// Who, since when and for how long at most.
  let declaration: LeaseDeclaration
  /// Owners of the same purpose are not in each other's way.
  let purpose: String

  static let prefix = "claim-"
  static let overtakenPrefix = "overtaken-"

  init(kind: Kind, coversContents: Bool, declaration: LeaseDeclaration, purpose: String) {
    self.kind = kind
    self.coversContents = coversContents
    self.declaration = declaration
    self.purpose = purpose
  }

  /// Reads an entry's name; nil when it is no claim.
  init?(_ entry: FileName) {
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

  /// The process, for those whom it is in the way of.
  var holder: LeaseHolder { LeaseHolder(identity: declaration.identity, held: declaration.age) }

  var text: String {
    "\(Self.prefix)\(kind.rawValue)\(coversContents ? "c" : "")-\(declaration.name)-\(purpose)"
  }

  /// The same owner, doing something else.
  func becoming(_ kind: Kind, coversContents: Bool) -> ClaimName {
    ClaimName(
      kind: kind, coversContents: coversContents, declaration: declaration, purpose: purpose)
  }

  /// The same claim, handed on to another process.
  func held(by process: ProcessIdentity) -> ClaimName {
    ClaimName(
      kind: kind, coversContents: coversContents, declaration: declaration.held(by: process),
      purpose: purpose)
  }

  /// Whether it may have been handed on to a program that works on the item itself.
  var mayBeHandedOn: Bool { kind == .inPlace || kind == .sharing }

  /// Whether its owner has had it for longer than it said.
  var isPastItsTerm: Bool { (declaration.age ?? .zero) >= declaration.term }

  /// What a purpose identifier is called in a name.
  static func purpose(of identifier: String) -> String {
    String(SHA256.hexDigest(of: Array(identifier.utf8)).prefix(16))
  }

  // MARK: What is left of a claim that was taken away

  /// The name that a taker gives it, for the late owner to find.
  func overtaken(by taker: LeaseDeclaration) -> String {
    Self.overtakenPrefix + nonce + "-" + taker.name
  }

  /// Who took it away, if that is what an entry says.
  func taker(_ entry: FileName) -> LeaseHolder? {
    let prefix = Self.overtakenPrefix + nonce + "-"
    guard entry.hasPrefix(prefix),
      let taker = LeaseDeclaration(FileName(bytes: Array(entry.bytes.dropFirst(prefix.utf8.count))))
    else { return nil }
    return LeaseHolder(identity: taker.identity, held: nil)
  }

  private var nonce: Substring { declaration.name.split(separator: "-").last ?? "" }
}
