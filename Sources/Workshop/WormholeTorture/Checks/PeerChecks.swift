import Wormhole

/// The check of peers: completes all pending work after the workers have ended, and checks it.
struct PeerChecks {
  private(set) var all: [Check] = []

  /// - Parameter life: Continues the numbering of the workers. The work done here is added to the
  ///   records.
  init(
    _ container: SharedContainer, _ directory: RunDirectory, options: TortureOptions,
    records: inout Records, life: Int
  ) throws {
    if options.kinds.contains(.requests) {
      let journals = records.journals.map { journal in
        let events = journal.entries.compactMap {
          if case .request(let event) = $0 { event } else { nil }
        }
        return (events: events, isWhole: journal.entries.contains(.rested))
      }
      all += RequestChecks(journals: journals, isOnEtcd: options.members != nil).all
      all.append(try RequestChecks.deadPeers(container, options.processes))
    }
    if options.kinds.contains(.queues) {
      let drained = try QueueStrand.drain(container, life: life).map { JournalEntry.queue($0) }
      records.journals.append(Journal(life: life, entries: drained))
      let checks = QueueChecks(
        "message",
        Self.events(records) { if case .queue(let event) = $0 { event } else { nil } })
      all += checks.all
      all.append(
        try checks.statuses { queue, slot, id in
          guard let id = QueueEntryID(id) else { return nil }
          return try container.queue(queue).sender("slot-\(slot)").status(of: id)
        })
    }
    if options.kinds.contains(.logs) { try addLogs(container, &records, life: life) }
    if options.kinds.contains(.files) {
      let drained = try FileStrand.drain(container, options.processes, life: life)
      records.journals.append(Journal(life: life, entries: drained))
      let checks = QueueChecks(
        "file", Self.events(records) { if case .file(let event) = $0 { event } else { nil } })
      all += checks.all
      all.append(
        try checks.givenBack { try FileStrand.isThere($0, in: directory) })
    }
  }

  private mutating func addLogs(
    _ container: SharedContainer, _ records: inout Records, life: Int
  ) throws {
    for subscriber in LogStrand.subscribers {
      let drained = try LogStrand.drain(subscriber, container, life: life)
      records.journals.append(
        Journal(life: life, entries: drained.map { .log(reader: subscriber, $0) }))
      let events = Self.events(records) {
        guard case .log(let reader, let event) = $0 else { return nil }
        return reader ?? subscriber == subscriber ? event : nil
      }
      all += QueueChecks("\(subscriber)'s log message", events).logs
    }
  }

  private static func events(
    _ records: Records, _ pick: (JournalEntry) -> QueueEvent?
  ) -> [[QueueEvent]] {
    records.journals.map { $0.entries.compactMap(pick) }
  }
}
