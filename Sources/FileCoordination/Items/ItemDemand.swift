/// What an access wants of one item.
struct ItemDemand: Sendable, Hashable {
  enum Kind: Sendable, Hashable {
    /// To read it while nobody publishes.
    case reading
    /// To change a private copy, which is published at the end.
    case copying(Copying)
    /// To change it where it is, while nobody reads.
    case inPlace
    /// To keep it from being changed, whether it is there or not.
    case sharing
  }

  /// What the private copy is at first.
  enum Copying: Sendable, Hashable {
    /// The item, with content of its own.
    case content
    /// The item, by second names: for an accessor that removes it.
    case names
    /// Nothing: for an accessor that makes it anew.
    case nothing
  }

  let kind: Kind
  /// Whether whoever works on the contents of the directory is waited for, and kept out.
  var coversContents = false
  /// Whether a symbolic link means what it points to.
  var followsLink = true
  /// Whether an item that is moved while it is waited for is looked for at its new place.
  var followsMoves = true
  /// Whether whoever works in place keeps the item locked; else only its claim keeps others out, which
  /// says for what purpose.
  var keepsLock = true
  /// For sentences: "read the item".
  let action: String

  var claimKind: ClaimName.Kind? {
    switch kind {
    case .reading: nil
    case .copying: .copying
    case .inPlace: .inPlace
    case .sharing: .sharing
    }
  }

  /// Whether another demand for the same item covers this one.
  var isWeakerThanWriting: Bool { kind == .reading || kind == .sharing }

  /// The same for one of several processes with one purpose: what it holds must tell that purpose,
  /// which a claim does and a lock does not.
  func amongOthersOfItsPurpose() -> ItemDemand {
    var demand = ItemDemand(
      kind: kind == .reading ? .sharing : kind, coversContents: coversContents,
      followsLink: followsLink, followsMoves: followsMoves, action: action)
    demand.keepsLock = false
    return demand
  }
}
