import Dispatch
import FoundationEssentials
import Glibc
import Synchronization
import Wormhole
import WormholeFiles
import WormholeFoundationClients
import WormholeSystem
import WormholeTestSupport

/// The verbs of a participant about files; a path is absolute and has no spaces.
///
/// ```
/// KIND PATH [KIND PATH]… [SETTING=VALUE]…      coordinates one access to all these items
/// count PATH NAME TIMES                        changes a counter so many times; answers each with its
///                                              number, and all with "done"
/// edit PATH NAME DONE DONE LAST                two threads add the lines from DONE + 1 to LAST to a
///                                              SharedText; answers each with its thread, its number,
///                                              and how many versions were merged so far
/// resumed FORM URL URL                         a `OnceForm`; its accessor answers "inside", and goes on at the
///                                              next line; then "ran", or the error that resumed its task
/// memory                                       its peak memory, in KiB
/// written                                      the bytes that it has written to files so far
/// fork                                         forks a child, which answers this and the lines that follow,
///                                              and stops; when it is continued it waits for the child, and
///                                              answers with the child's status
/// ```
///
/// Kinds are "reading", "uploading", "linked" (reading what a link points to), "writing", "merging",
/// "replacing", "deleting", "moving", "metadata", "inplace". Settings are
///
/// ```
/// wait=SECONDS term=SECONDS purpose=NAME
/// put=TEXT stamp=TEXT append=TEXT erase=yes add=NUMBER rename=PATH tree=NAME,NAME read=yes     the accessor's action on
///                                                                       the last item
/// ```
///
/// Without any of the actions the accessor answers "inside URL…" and then takes its own lines: the
/// same words without "=", "leave", "throw", and any line that a participant takes, even another
/// access.
enum CoordinationVerbs {
  static let kinds: Set<String> = [
    "reading", "uploading", "linked", "writing", "merging", "replacing", "deleting", "moving",
    "metadata", "inplace",
  ]
  static let all = kinds.union(["count", "edit", "fork", "memory", "resumed", "written"])

  struct Thrown: Error {}

  static func perform(_ words: ArraySlice<String>) throws -> String {
    do {
      switch words.first {
      case "count": return try count(Array(words.dropFirst()))
      case "edit": return edit(Array(words.dropFirst()))
      case "fork": return fork()
      case "resumed": return try resumed(Array(words.dropFirst()))
      case "memory": return try number("VmHWM:", in: "status")
      case "written": return try number("wchar:", in: "io")
      default: return try CoordinationOrder(words).run()
      }
    } catch let error as WormholeError {
      return "error \(error.code.rawValue) \(error)"
    } catch is Thrown {
      return "thrown"
    }
  }

  static func say(_ line: String) throws { try Program.write(Array((line + "\n").utf8), to: 1) }

  private static func count(_ words: [String]) throws -> String {
    let (path, name, times) = (words[0], words[1], Int(words[2]) ?? 0)
    for number in 1...times {
      var isDone = false
      while !isDone {
        do {
          try FileCoordinator().coordinate(
            writingItemAt: URL(filePath: path), until: .now + .seconds(600)
          ) { try SharedCounter.add(to: $0.path, name) }
          isDone = true
        } catch let error as WormholeError where error.code == .overtaken {
          // The process was stopped meanwhile, so nothing of the change is visible and it is
          // repeated.
          continue
        }
      }
      try say("\(number)")
    }
    return "done"
  }

  private static func edit(_ words: [String]) -> String {
    let text = SharedText(URL(filePath: words[0]))
    let numbers = words.dropFirst(2).compactMap { Int($0) }
    let group = DispatchGroup()
    for thread in 0..<2 {
      DispatchQueue(label: "edit").async(group: group) {
        for number in stride(from: numbers[thread] + 1, through: numbers[2], by: 1) {
          text.add("\(words[1]).\(thread).\(number)")
          Diagnostics.reporting { try say("\(thread) \(number) \(text.mergedVersions)") }
        }
      }
    }
    group.wait()
    text.close()
    return "done"
  }

  private static func resumed(_ words: [String]) throws -> String {
    guard words.count == 3, let form = OnceForm(rawValue: words[0]),
      let item = URL(string: words[1]), let other = URL(string: words[2])
    else { return "error usage" }
    let answer = Mutex("")
    let isDone = DispatchSemaphore(value: 0)
    Task {
      let text = await form.outcome(item, beside: other) { url in
        Diagnostics.reporting { try say("inside") }
        _ = readLine()
        // After a takeover its copy is gone, and on a full disk nothing can be written.
        if form.isWriting { try? Data(form.rawValue.utf8).write(to: url) }
        return "ran"
      }
      answer.withLock { $0 = text }
      isDone.signal()
    }
    isDone.wait()
    return answer.withLock { $0 }
  }

  private static func fork() -> String {
    // Swift does not offer it, because a child may do almost nothing. Here no other thread has a lock that
    // the child needs, or hardly ever.
    guard let symbol = dlsym(UnsafeMutableRawPointer(bitPattern: 0), "fork") else {
      return "error other no fork"
    }
    let fork = unsafeBitCast(symbol, to: (@convention(c) () -> Int32).self)
    let child = fork()
    if child == 0 { return "done" }
    raise(SIGSTOP)
    var status: Int32 = -1
    return waitpid(child, &status, 0) == child ? "\(status)" : "error other no child"
  }

  private static func number(_ name: String, in table: String) throws -> String {
    let file = try FileDescriptor.open("/proc/self/" + table, .readOnly)
    let text = String(
      decoding: try file.readToEnd(expectedBytes: 0, maximumBytes: 65_536), as: UTF8.self)
    let line = text.split(separator: "\n").first { $0.hasPrefix(name) } ?? ""
    return String(line.split(separator: " ").dropFirst().first ?? "")
  }
}

/// One access as a line of words requests it.
private struct CoordinationOrder {
  private var intents: [FileAccessIntent] = []
  private var settings: [(name: String, value: String)] = []

  init(_ words: ArraySlice<String>) {
    var kind: String?
    for word in words {
      if let known = kind {
        intents.append(Self.intent(known, URL(filePath: word)))
        kind = nil
      } else if CoordinationVerbs.kinds.contains(word) {
        kind = word
      } else {
        let parts = word.split(separator: "=", maxSplits: 1).map(String.init)
        settings.append((parts[0], parts.count > 1 ? parts[1] : ""))
      }
    }
  }

  private static func intent(_ kind: String, _ url: URL) -> FileAccessIntent {
    switch kind {
    case "reading": .readingIntent(with: url)
    case "uploading": .readingIntent(with: url, options: .forUploading)
    case "linked": .readingIntent(with: url, options: .resolvesSymbolicLink)
    case "merging": .writingIntent(with: url, options: .forMerging)
    case "replacing": .writingIntent(with: url, options: .forReplacing)
    case "deleting": .writingIntent(with: url, options: .forDeleting)
    case "moving": .writingIntent(with: url, options: .forMoving)
    case "metadata": .writingIntent(with: url, options: .contentIndependentMetadataOnly)
    case "inplace": .writingIntent(with: url, options: .inPlace)
    default: .writingIntent(with: url)
    }
  }

  private func setting(_ name: String) -> String? {
    settings.first { $0.name == name }?.value
  }

  private func seconds(_ name: String) -> Duration? {
    setting(name).flatMap { Double($0) }.map { .seconds($0) }
  }

  func run() throws -> String {
    let coordinator = FileCoordinator()
    if let purpose = setting("purpose") { coordinator.purposeIdentifier = purpose }
    let actions = settings.filter { !["wait", "term", "purpose"].contains($0.name) }
    return try coordinator.coordinate(
      with: intents, until: .now + (seconds("wait") ?? .seconds(30)),
      term: seconds("term") ?? FileCoordinator.standardTerm
    ) {
      guard let action = actions.first else { return try inside() }
      let path = intents.last?.url.path ?? ""
      return try ItemAction.perform(action.name, action.value, path)
    }
  }

  private func inside() throws -> String {
    try CoordinationVerbs.say("inside " + intents.map(\.url.path).joined(separator: " "))
    while let line = readLine() {
      let words = line.split(separator: " ").map(String.init)
      switch words.first {
      case "leave": return "done"
      case "throw": throw CoordinationVerbs.Thrown()
      case .some(let word) where CoordinationVerbs.all.contains(word):
        try CoordinationVerbs.say(CoordinationVerbs.perform(words[...]))
      default:
        let path = intents.last?.url.path ?? ""
        try CoordinationVerbs.say(
          ItemAction.perform(words.first ?? "", words.dropFirst().first ?? "", path))
      }
    }
    return "done"
  }
}

/// The action of an accessor on an item.
private enum ItemAction {
  /// - Returns: "done", or the content that was read.
  static func perform(_ name: String, _ value: String, _ path: String) throws -> String {
    switch name {
    case "put": try ItemText.write(value, to: path)
    case "read": return try ItemText.read(path) ?? "nothing"
    case "add":
      try ItemText.write("\((Int(ItemText.read(path) ?? "") ?? 0) + (Int(value) ?? 0))", to: path)
    case "stamp":
      let file = try FileDescriptor.open(path, .writeOnly)
      try file.writeAll(Array(value.utf8))
    case "append":
      let file = try FileDescriptor.open(path, [.writeOnly, .append])
      try file.writeAll(Array(value.utf8))
    case "erase": try FileManager.default.removeItem(atPath: path)
    case "rename": try rename(path, at: Directory.current, to: value, at: Directory.current)
    case "tree":
      try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
      for name in value.split(separator: ",") {
        try ItemText.write("\(name)", to: path + "/\(name)")
      }
    default: return "error usage"
    }
    return "done"
  }
}
