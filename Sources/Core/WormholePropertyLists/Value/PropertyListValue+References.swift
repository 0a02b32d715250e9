/// The references of a keyed archive, as XML spells them.
extension PropertyListValue {
  private static let referenceKey = "CF$UID"

  package init(archiveReference number: Int64) {
    self = .dictionary([Self.referenceKey: .integer(number)])
  }

  /// The number of the object that this value refers to; nil if it refers to none.
  package var archiveReference: UInt32? {
    guard case .dictionary(let fields) = self, fields.count == 1,
      case .integer(let number)? = fields[Self.referenceKey]
    else { return nil }
    return UInt32(exactly: number)
  }
}
