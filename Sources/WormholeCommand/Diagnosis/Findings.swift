import AppGroup
import SystemCalls

/// What a report says: the faults first, and each level in the order in which one would mend it.
enum Findings {
  /// Entries of one kind that are told one by one; the rest are counted.
  private static let maximumEach = 20

  /// - Parameter options: how the container was named, for the commands of the advice.
  static func of(_ report: ContainerReport, options: String) -> [Finding] {
    let program = "wormhole " + (options.isEmpty ? "" : options + " ")
    let all =
      report.names.values.compactMap {
        unreadable(
          $0, "the message \($0.identifier.quoted)", "send it again", "quarantine", program)
      }
      + report.own.values.compactMap {
        let title = OwnTitles.use(ofValue: $0.identifier).title
        return unreadable($0, title, nil, "quarantine-own", program)
      } + report.names.notifications.compactMap { unreadableState($0, program) }
      + report.leases.compactMap(overdue)
      + leftovers(report, program)
      + report.foreignEntries.filter(\.isInTheWay).prefix(maximumEach).map(foreign)
      + report.foreignEntries.filter { !$0.isInTheWay }.prefix(maximumEach).map(foreign)
      + report.looseEntries.prefix(maximumEach).map(loose)
      + watchLimits(report)
      + network(report)
      + report.failures.prefix(maximumEach).map { refused($0, .unreadablePart) }
    return [.fault, .warning, .note].flatMap { level in all.filter { $0.level == level } }
  }

  /// A container that cannot even be opened.
  static func refused(_ error: AppGroupError, _ kind: Finding.Kind = .containerRefused) -> Finding {
    let command = error.remedy.flatMap { isCommand($0) ? $0 : nil }
    let advice = error.remedy.map { $0.capitalizedFirst + "." }
    return Finding(
      kind: kind, what: "Cannot \(error.action): \(error.reason).", path: error.path,
      advice: command != nil ? "To mend it:" : advice ?? "There is no remedy but to look there.",
      command: command)
  }

  /// A group that nobody has sent a message in, or whose identifier has a slip.
  ///
  /// - Parameter hint: the group that was meant, perhaps, as a sentence.
  static func notMade(path: String, options: String, hint: String) -> Finding {
    Finding(
      kind: .containerRefused,
      what: "The group has no container yet" + (hint.isEmpty ? "." : "; \(hint.dropLast())"),
      path: path,
      advice: "If the group is the right one, the first message makes it:",
      command: "wormhole \(options) send IDENTIFIER VALUE")
  }

  /// Whether a remedy is something to type; others are sentences.
  private static func isCommand(_ remedy: String) -> Bool {
    ["chmod ", "mkdir ", "rm "].contains { remedy.hasPrefix($0) }
  }

  private static func unreadable(
    _ content: ContainerReport.NamedContent, _ title: String, _ otherWay: String?,
    _ option: String, _ program: String
  ) -> Finding? {
    guard case .unreadable(let error) = content.condition else { return nil }
    let what = "\(title.capitalizedFirst) cannot be read: \(error.briefReason)."
    switch error.code {
    case .damaged, .notAValue, .tooLarge:
      return Finding(
        kind: .damagedValue, what: what, path: content.path,
        advice: ((otherWay.map { $0 + ", or " } ?? "") + "put the file aside:").capitalizedFirst,
        command: program + "doctor --\(option) \(content.identifier.quotedForShell)")
    default:
      return Finding(
        kind: .damagedValue, what: what, path: content.path,
        advice: error.remedy ?? "Look at the file.", command: nil)
    }
  }

  private static func unreadableState(
    _ content: ContainerReport.NamedContent, _ program: String
  ) -> Finding? {
    guard case .unreadable(let error) = content.condition else { return nil }
    return Finding(
      kind: .damagedValue,
      what: "The state of the notification \(content.identifier.quoted) cannot be read: "
        + "\(error.briefReason).",
      path: content.path, advice: "Set it anew:",
      command: program + "notify set \(content.identifier.quotedForShell) 0")
  }

  private static func overdue(_ lease: ContainerReport.HeldLease) -> Finding? {
    guard let overdue = lease.overdue else { return nil }
    let reason =
      overdue == .stopped ? "its holder is stopped" : "its holder takes longer than it said"
    let free =
      "No action is needed: the next writer takes the lease over, and the holder then begins "
      + "again."
    let process = lease.holder.processID
    return Finding(
      kind: .overdueLease,
      what: "The lease of \(lease.titleInSentence) is overdue, because \(reason): \(lease.holder).",
      path: lease.path,
      advice: overdue == .stopped && process != nil ? free + " To let it go on:" : free,
      command: overdue == .stopped ? process.map { "kill -CONT \($0)" } : nil)
  }

  private static func leftovers(_ report: ContainerReport, _ program: String) -> [Finding] {
    let kinds: [(ContainerReport.Leftover.Kind, String)] = [
      (.brokenLease, "leases that were taken away and not removed to the end"),
      (.abandonedChange, "changes whose makers died before they published them"),
      (.abandonedContent, "messages whose writers died before they published them"),
      (.abandonedCreation, "files and directories whose makers died before they named them"),
      (.abandonedPresence, "registrations of processes that died"),
      (.abandonedEntry, "what senders and consumers of queues had not finished when they died"),
      (.abandonedMailbox, "mailboxes of processes that died"),
    ]
    return kinds.compactMap { kind, noun in
      let found = report.leftovers.filter { $0.kind == kind }
      guard let first = found.first else { return nil }
      let more = found.count > 1 ? " (and \(found.count - 1) more)" : ""
      return Finding(
        kind: .leftover, what: "Leftovers (\(found.count)): \(noun).", path: first.path + more,
        advice: [
          .abandonedCreation, .abandonedPresence, .abandonedEntry, .abandonedMailbox,
        ].contains(kind)
          ? "They are in nobody's way. To remove them:"
          : "They are in nobody's way, and the next change removes those of its message. "
            + "To remove all of them:",
        command: program + "doctor --sweep")
    }
  }

  private static func foreign(_ entry: ContainerReport.ForeignEntry) -> Finding {
    Finding(
      kind: .foreignEntry, level: entry.isInTheWay ? .fault : nil,
      what: entry.isInTheWay
        ? "Something that is none of the container's stands where its own should be, and keeps "
          + "a message from being sent."
        : "Something is none of the container's.",
      path: entry.path, advice: "If nobody needs it:",
      command: "rm -r \(entry.path.quotedForShell)")
  }

  private static func loose(_ entry: ContainerReport.LooseEntry) -> Finding {
    if entry.isForeign {
      return Finding(
        kind: .foreignOwner,
        what: "An entry belongs to user \(entry.owner), not to the container's owner, and is "
          + "not trusted.",
        path: entry.path, advice: "If it is as it should be:",
        command: "chown \(Program.effectiveUser) \(entry.path.quotedForShell)")
    }
    return Finding(
      kind: .looseMode,
      what: "The mode of an entry, \(String(entry.permissions, radix: 8)), would let others "
        + "change it.",
      path: entry.path, advice: "To take that right away:",
      command: "chmod go-w \(entry.path.quotedForShell)")
  }

  private static func network(_ report: ContainerReport) -> [Finding] {
    guard let network = report.networkFileSystem else { return [] }
    return [
      Finding(
        kind: .networkFileSystem,
        what: "The container is on \(network), a network file system: the kernel does not tell "
          + "what other machines change there, so listeners look five times a second.",
        path: report.path,
        advice: "Where all processes are on one machine, use a directory on a local disk.",
        command: nil)
    ]
  }
}

extension String {
  fileprivate var capitalizedFirst: String { prefix(1).uppercased() + dropFirst() }
}
