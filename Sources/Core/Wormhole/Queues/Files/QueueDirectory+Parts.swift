import WormholeSystem

extension QueueDirectory {
  /// The same files as rows, in the order in which an unused queue loses its directories.
  static let parts = [
    ContainerPart(pending, parts: [batches(.waiting)]),
    ContainerPart(taken, parts: [consumer]),
    ContainerPart(outcomes, parts: [notes(.outcome)]),
    ContainerPart(
      sent,
      parts: [
        batches(.receipt),
        ContainerPart(each: .forgotten) { $0.text.hasSuffix(forgottenSuffix) },
      ]),
    ContainerPart(
      failed, parts: [notes(.failure), ContainerPart(each: .plain, AttachmentPlace.takenPrefix)]),
    ContainerPart(staged, copied: .nothing, parts: [ContainerPart(each: .unfinished)]),
    ContainerPart(keys, parts: [ContainerPart(each: .plain, parts: [notes(.mark)])]),
    ContainerPart(AttachmentPlace.directory, copied: .each, parts: [attachment]),
    .lease, .identifier(copied: .whole),
  ]

  private static let attachment = ContainerPart(
    each: .attachment,
    parts: [
      ContainerPart(AttachmentPlace.content),
      // A sender begins an unfinished copy again.
      ContainerPart(each: .plain, AttachmentPlace.copyingPrefix, copied: .nothing),
    ]
  ) { AttachmentPlace.isID($0.text) }

  /// All but its batches belongs to the consumer as long as it lives; the next one sweeps it.
  private static let consumer = ContainerPart(
    each: .consumer,
    parts: [
      batches(.taken),
      ContainerPart(each: .deliveries) { $0.text.hasSuffix(deliveriesSuffix) },
      ContainerPart(each: .plain) { batch(besideWhich: $0.text) != nil },
      ContainerPart(each: .plain, passingPrefix),
      ContainerPart(each: .plain, AttachmentPlace.takenPrefix),
      ContainerPart(each: .plain, AttachmentPlace.makingPrefix),
    ])

  private static func batches(_ role: ContainerPart.Role) -> ContainerPart {
    ContainerPart(each: role) { EntryFile(bytes: $0.bytes) != nil }
  }

  private static func notes(_ role: ContainerPart.Role) -> ContainerPart {
    ContainerPart(each: role) { OutcomeFile.id($0.text) != nil }
  }
}
