import Wormhole
import WormholeInspection
import WormholeSystem
import WormholeTerminals

/// One problem of a container: its cause, its place, and its remedy.
struct Finding: Equatable, Encodable {
  /// For machines; the values are never changed.
  enum Kind: String {
    case containerRefused, damagedValue, lostValue, overdueLease, leftover, foreignEntry
    case unseenHolder, foreignOwner, looseMode, watchLimit, networkFileSystem, unreadablePart,
      cluster
    case quarantine
  }

  /// How serious it is; the names are for machines, too.
  enum Level: Comparable {
    /// Normal: a program that is killed leaves such entries, and they block no process.
    case note
    /// It works, but slower or less safely than it should.
    case warning
    /// Something is lost, refused or unreadable until it is repaired.
    case fault
  }

  let kind: Kind
  /// Nil for the level of the kind.
  var ownLevel: Level?
  let what: String
  let path: String
  /// The remedy, and its exact command if there is one.
  let advice: String
  var command: String?

  var level: Level { ownLevel ?? kind.level }

  /// A paragraph; paths and commands are never broken.
  func text(number: Int, columns: Int) -> String {
    let lead = "\(number). \("\(level)".capitalizedFirst): "
    let space = "".padded(to: "\(number). ".count)
    var text =
      lead + TextWrapping.wrap(what, columns: columns, indent: space.count, firstIndent: lead.count)
      + "\n" + space + path.onOneLine + "\n"
      + TextWrapping.wrap(advice, columns: columns, after: space) + "\n"
    if let command { text += space + "  " + command + "\n" }
    return text.withoutControlCharacters
  }

  func encode(to encoder: any Encoder) throws {
    let members: JSONObject = [
      "kind": kind.rawValue, "level": "\(level)", "what": what, "path": path, "advice": advice,
      "command": command,
    ]
    try members.encode(to: encoder)
  }
}

extension Finding.Kind {
  fileprivate var level: Finding.Level {
    switch self {
    case .containerRefused, .damagedValue, .foreignOwner, .unreadablePart: .fault
    case .lostValue, .overdueLease, .foreignEntry, .looseMode: .warning
    case .watchLimit, .networkFileSystem, .cluster, .quarantine: .warning
    case .leftover, .unseenHolder: .note
    }
  }
}

extension [Finding] {
  /// `1 fault, 2 warnings, 1 note`; nil if there is none of these levels.
  func summary(of levels: [Finding.Level] = [.fault, .warning, .note]) -> String? {
    let parts = levels.compactMap { level in
      let count = self.count { $0.level == level }
      return count == 0 ? nil : "\(count) \(level)\(count == 1 ? "" : "s")"
    }
    return parts.isEmpty ? nil : parts.joined(separator: ", ")
  }
}

struct Findings {
  private let report: ContainerReport
  /// How a command begins that the advice names.
  private let program: String

  /// The entries of one kind that get a finding each.
  private static let maximumEach = 20

  /// Returns the faults first, and each level in the order of repair.
  ///
  /// - Parameter options: the options that name the container, for the commands of the advice.
  static func of(_ report: ContainerReport, options: String) -> [Finding] {
    let program = "\(ProgramName.called) " + (options.isEmpty ? "" : options + " ")
    let all = Findings(report: report, program: program).all
    return [.fault, .warning, .note].flatMap { level in all.filter { $0.level == level } }
  }

  private var all: [Finding] {
    let (inTheWay, harmless) = (
      report.foreignEntries.filter(\.isInTheWay), report.foreignEntries.filter { !$0.isInTheWay }
    )
    let ofContent =
      report.names.values.map {
        unreadable($0, "the value \($0.identifier.quoted)", otherWay: "send it again, or ")
      }
      + report.own.values.map {
        unreadable($0, $0.title ?? $0.identifier.quoted, kind: "own")
      }
      + report.names.notifications.map(unreadableState) + report.names.logs.map(unusable)
      + report.leases.map(overdue) + Self.leftovers.map(leftover)
    let ofEntries =
      (inTheWay.prefix(Self.maximumEach) + harmless.prefix(Self.maximumEach)).map(foreign)
      + report.looseEntries.prefix(Self.maximumEach).map(loose)
    return ofContent.compactMap(\.self) + ofEntries + quarantine + watchLimits + network
      + (report.cluster.map { ClusterFindings.of($0, of: report) } ?? [])
      + report.failures.prefix(Self.maximumEach).map(unexamined)
  }

  private func unexamined(_ error: WormholeError) -> Finding {
    guard error.code == .containerMissing, error.path.hasSuffix(ContainerFormat.fileName) else {
      return Self.refused(error, .unreadablePart)
    }
    return Finding(
      kind: .unreadablePart,
      what:
        "The container's version is unknown: \(error.reason). Programs assume their own version.",
      path: error.path,
      advice: "The next program that opens the container to write makes it again. To do it now:",
      command: program + "doctor --sweep")
  }

  /// The obstacles to every write: no space, no inodes, a quota, a read-only file system.
  static func ofWriting(in container: SharedContainer) throws -> [Finding] {
    do {
      try container.tryWriting()
      return []
    } catch let error as WormholeError {
      return [refused(error)]
    }
  }

  /// A container that cannot be opened.
  ///
  /// - Parameter level: Nil for the level of the kind.
  static func refused(
    _ error: WormholeError, _ kind: Finding.Kind = .containerRefused, level: Finding.Level? = nil
  ) -> Finding {
    // A remedy is a command, or a sentence.
    let command = error.remedy.flatMap { remedy in
      ["chmod ", "mkdir ", "rm "].contains { remedy.hasPrefix($0) } ? remedy : nil
    }
    let advice = error.remedy.map { $0.capitalizedFirst + "." } ?? "No command repairs it."
    return Finding(
      kind: kind, ownLevel: level, what: "Cannot \(error.action): \(error.reason).",
      path: error.path,
      advice: command != nil ? "To repair it:" : advice, command: command)
  }

  /// A group without a container: no process has used it yet, or its identifier has a typo.
  ///
  /// - Parameter hint: a question with the group that may be meant, or an empty text.
  static func notMade(path: String, options: String, hint: String) -> Finding {
    Finding(
      kind: .containerRefused,
      what: "The group has no container yet" + (hint.isEmpty ? "." : "; \(hint.dropLast())"),
      path: path, advice: "If the group is the right one, the first value makes it:",
      command: "\(ProgramName.called) \(options) send IDENTIFIER VALUE")
  }

  private func unreadable(
    _ content: ContainerReport.NamedContent, _ title: String, otherWay: String = "",
    kind: String = "value"
  ) -> Finding? {
    let command = program + "doctor --quarantine \("\(kind):\(content.identifier)".quotedForShell)"
    let kept = content.kept.map { "the version of \($0.secondsText)" }
    let putAside = (otherWay + "put the file aside").capitalizedFirst
    guard let error = content.problem else {
      return kept.map {
        Finding(
          kind: .lostValue,
          what: "The last content of \(title) never reached the disk. Readers get \($0), "
            + "which was kept.",
          path: content.path, advice: "\(putAside), and make that one the value:",
          command: command)
      }
    }
    let what = "\(title.capitalizedFirst) cannot be read"
    guard !Engines.isMeant(by: content.path) else {
      let advice = "If nobody needs it, remove that key below the prefix (etcdctl del)."
      return unreadable(what, error, at: content.path, repair: advice)
    }
    let repair = putAside + (kept.map { ", and put back \($0), which was kept:" } ?? ":")
    return unreadable(what, error, at: content.path, repair: repair, command)
  }

  private func unusable(_ log: ContainerReport.NamedLog) -> Finding? {
    log.problem.map { error in
      unreadable(
        "Nothing can be appended to the log \(log.name.quoted)", error, at: error.path,
        repair: "Put its file aside; the messages stay, and its bounds have to be set again:",
        program + "doctor --quarantine \("log:\(log.name)".quotedForShell)")
    }
  }

  /// A file that cannot be read; if it is damaged, nothing else makes it readable than a repair.
  private func unreadable(
    _ what: String, _ error: WormholeError, at path: String, repair: String,
    _ command: String? = nil
  ) -> Finding {
    let isDamaged = [.damaged, .notAValue, .tooLarge].contains(error.code)
    let remedy = (error.remedy ?? "look at the file").capitalizedFirst + "."
    return Finding(
      kind: .damagedValue, what: "\(what): \(error.briefReason).", path: path,
      advice: isDamaged ? repair : remedy, command: isDamaged ? command : nil)
  }

  private func unreadableState(_ content: ContainerReport.NamedContent) -> Finding? {
    content.problem.map { error in
      unreadable(
        "The state of the notification \(content.identifier.quoted) cannot be read", error,
        at: content.path, repair: "Set it again:",
        program + "notify set \(content.identifier.quotedForShell) 0")
    }
  }

  private func overdue(_ lease: ContainerReport.HeldLease) -> Finding? {
    guard let overdue = lease.overdue else { return unseen(lease) }
    let reason = overdue == .stopped ? "its holder is stopped" : "its holder exceeds its term"
    let process = overdue == .stopped ? lease.holder.processID : nil
    return Finding(
      kind: .overdueLease,
      what: "The lease of \(title(of: lease)) is overdue, because \(reason): "
        + "\(lease.holder.holding).",
      path: lease.path,
      advice: "No action needed. The next writer takes the lease over, and the holder then begins "
        + "again." + (process == nil ? "" : " To continue the holder:"),
      command: process.map { "kill -CONT \($0)" })
  }

  private func title(of lease: ContainerReport.HeldLease) -> String {
    lease.title ?? lease.identifier.quoted
  }

  /// A holder that may be stopped, as far as can be seen.
  private func unseen(_ lease: ContainerReport.HeldLease) -> Finding? {
    guard lease.holder.state == .unknown else { return nil }
    return Finding(
      kind: .unseenHolder,
      what:
        "The lease of \(title(of: lease)) is held, and whether its holder runs cannot be seen: "
        + "\(lease.holder).",
      path: lease.path,
      advice:
        "Look for it in its own container. If it is stopped, the next writer takes the lease over "
        + "when its term has passed.")
  }

  /// The kinds of leftovers, and whether the next change of their value removes them.
  private static let leftovers:
    [(kind: ContainerReport.Leftover.Kind, noun: String, isOfMessage: Bool)] = [
      (.brokenLease, "leases that were taken over and not removed completely", true),
      (.abandonedChange, "changes of processes that died before they published them", true),
      (.abandonedContent, "values of processes that died before they published them", true),
      (
        .abandonedCreation, "files and directories of processes that died before they named them",
        false
      ),
      (.abandonedPresence, "registrations of processes that died", false),
      (.abandonedEntry, "unfinished work on queues and logs of processes that died", false),
      (.abandonedMailbox, "mailboxes of processes that died", false),
    ]

  private func leftover(
    _ kind: ContainerReport.Leftover.Kind, _ noun: String, isOfMessage: Bool
  ) -> Finding? {
    let found = report.leftovers.filter { $0.kind == kind }
    guard let first = found.first else { return nil }
    let more = found.count > 1 ? " (and \(found.count - 1) more)" : ""
    return Finding(
      kind: .leftover, what: "Leftovers (\(found.count)): \(noun).", path: first.path + more,
      advice: isOfMessage
        ? "They block nobody, and the next change removes those of its value. To remove all of "
          + "them:" : "They block nobody. To remove them:",
      command: program + "doctor --sweep")
  }

  private func foreign(_ entry: ContainerReport.ForeignEntry) -> Finding {
    Finding(
      kind: .foreignEntry, ownLevel: entry.isInTheWay ? .fault : nil,
      what: entry.isInTheWay
        ? "A foreign entry has the place of one of the container's own, and keeps a value from "
          + "being sent."
        : "This entry does not belong to the container.",
      path: entry.path,
      advice: entry.path.isWhole
        ? "If nobody needs it:"
        : "If nobody needs it, remove it. Its name cannot be typed (ls -b).",
      command: entry.path.isWhole
        ? (report.cluster == nil ? "rm -r " : "etcdctl del ") + entry.path.quotedForShell : nil)
  }

  private func loose(_ entry: ContainerReport.LooseEntry) -> Finding {
    Finding(
      kind: entry.isForeign ? .foreignOwner : .looseMode,
      what: entry.isForeign
        ? "An entry belongs to user \(entry.owner), not to the container's owner, so it is not trusted."
        : "The mode of an entry, \(entry.mode), lets others change it.",
      path: entry.path,
      advice: entry.isForeign ? "If its content is right:" : "To remove that permission:",
      command: entry.path.isWhole
        ? (entry.isForeign ? "chown \(Program.effectiveUser) " : "chmod go-w ")
          + entry.path.quotedForShell : nil)
  }

  private var quarantine: [Finding] {
    guard let first = report.quarantine.first else { return [] }
    let count = report.quarantine.count
    let place = report.path + "/" + Quarantine.directory
    return [
      Finding(
        kind: .quarantine,
        what: "What could not be read was put aside (\(count) \(count == 1 ? "file" : "files")).",
        path: count == 1 ? first.path : place,
        advice: "Send its content again if somebody needs it. To remove it:",
        command: "rm -r \(place.quotedForShell)")
    ]
  }

  private var network: [Finding] {
    guard let network = report.networkFileSystem else { return [] }
    return [
      Finding(
        kind: .networkFileSystem,
        what: "The container is on \(network), a network file system: the kernel does not report "
          + "changes by other machines, so listeners check five times a second.",
        path: report.path,
        advice: "If all processes run on one machine, use a directory on a local disk.")
    ]
  }
}

extension ContainerReport.NamedContent {
  var hasFinding: Bool { problem != nil || kept != nil }
}

extension String {
  /// Whether a command can name what a path was read from: a byte that is not UTF-8 was replaced,
  /// and a shell drops final line breaks.
  fileprivate var isWhole: Bool { !isRepaired && last?.isNewline != true }
}

/// The kernel's limits for watching files: a process without a watch must check at intervals.
extension Findings {
  private var watchLimits: [Finding] {
    let use = report.watches
    let names = [report.names, report.own].reduce(0) {
      $0 + $1.values.count + $1.left + $1.notifications.count
    }
    let findings = [
      limit(
        "watches", of: use.maximumWatches, setting: "max_user_watches", used: use.watches,
        needed: max(use.watches, names)),
      limit(
        "inotify instances (one for each process that listens)", of: use.maximumInstances,
        setting: "max_user_instances", used: use.instances, needed: use.instances),
    ].compactMap { $0 }
    guard findings.isEmpty, let refusal = use.refusal else { return findings }
    return [
      Finding(
        kind: .watchLimit,
        what: "No further file can be watched, so listeners check five times a second: "
          + "\(refusal.reason).",
        path: refusal.path, advice: "To raise the limits, as root:",
        command: "sysctl fs.inotify.max_user_instances=1024 fs.inotify.max_user_watches=1048576")
    ]
  }

  /// Nine tenths count as all: a build tool or an editor takes the rest at once.
  private func limit(
    _ noun: String, of maximum: Int?, setting: String, used: Int, needed: Int
  ) -> Finding? {
    guard let maximum, needed >= maximum / 10 * 9 else { return nil }
    let demand = needed > used ? ", and the container has \(needed) names" : ""
    return Finding(
      kind: .watchLimit,
      what: "The user's \(noun) are nearly used up: \(used) of \(maximum)\(demand). Listeners "
        + "without one check five times a second.",
      path: "/proc/sys/fs/inotify/\(setting)", advice: "To raise the limit, as root:",
      command: "sysctl fs.inotify.\(setting)=\(max(needed, maximum) * 2)")
  }
}
