extension ContainerPart {
  /// `lease/`, of every primitive; see `LeaseSite`.
  static let lease = ContainerPart(
    LeaseSite.lease, .lease, copied: .nothing,
    parts: [
      ContainerPart("held", .held),
      ContainerPart(LeaseSite.note, .takeover),
      ContainerPart(LeaseSite.transaction, .transaction),
      ContainerPart(each: .plain, KeptVersion.prefix),
      ContainerPart(each: .broken, LeaseSite.brokenPrefix),
      ContainerPart(each: .unfinished, LeaseSite.preparedPrefix),
    ])
}
