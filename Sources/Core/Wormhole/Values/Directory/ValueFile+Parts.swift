extension ValueFile {
  /// The name of the file that the lease of a name protects.
  static func name(of primitive: NameKind.Primitive) -> String {
    switch primitive {
    case .value: LeaseSite.value
    case .notification: "state.plist"
    case .presence, .consumer: "exclusive.plist"
    case .log: "log.plist"
    case .queue: preconditionFailure("a queue has a lease, and no value")
    }
  }

  /// `values/<name>/`.
  package static let parts = [
    ContainerPart(name(of: .value), .content, copied: .meaning),
    .lease, .identifier(copied: .nothing),
    ContainerPart(each: .plain, NamedDirectory.startPrefix, copied: .nothing),
  ]
}
