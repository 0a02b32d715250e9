/// What each room may import and depend on, and what each folder of a room may use.
///
/// A new room or folder gets a row here, with what lies below it and nothing beside it.
enum Layers {
  private static let base: Set<String> = [
    "WormholeToolkit", "Wormhole", "WormholePropertyLists", "WormholeSystem",
    "FoundationEssentials", "Dispatch", "Synchronization",
  ]

  /// The modules that a target may import and depend on.
  static let allowed: [String: Set<String>] = [
    "WormholeShims": [],
    "WormholeElsewhere": [],
    "WormholeSystem": ["WormholeShims", "Glibc", "Dispatch", "Synchronization"],
    "WormholePropertyLists": ["FoundationEssentials", "Synchronization"],
    "Wormhole": base.subtracting(["Wormhole", "WormholeToolkit"]),
    "WormholeToolkit": base.subtracting(["WormholeToolkit"]).union(["WormholeShims", "Glibc"]),
    "WormholeInspection": base,
    "WormholeEtcd": base.union(["WormholeInspection", "WormholeShims"]),
    "notify": [
      "Wormhole", "WormholeSystem", "WormholeDarwinTypes", "WormholeShims", "Dispatch",
      "Synchronization",
    ],
    "WormholeFiles": base,
    "NSFileCoordination": [
      "WormholeFiles", "Wormhole", "Foundation", "Dispatch", "Synchronization",
    ],
    "GroupDefaults": base.union(["WormholeInspection"]),
    "WormholeUserDefaults": [
      "GroupDefaults", "Wormhole", "WormholePropertyLists", "Foundation", "Dispatch",
      "Synchronization",
    ],
    "SharedUserDefaults": ["WormholeUserDefaults", "GroupDefaults", "Foundation"],
    "Combine": ["WormholeUserDefaults", "Foundation"],
    "WormholePeers": base.union(["WormholeInspection"]),
    "WatchConnectivity": base.union(["WormholeUserDefaults", "WormholePeers", "Foundation"]),
    "Communicator": [
      "WatchConnectivity", "WormholePropertyLists", "Foundation", "Dispatch", "Synchronization",
    ],
    "MMWormhole": base.union(["WatchConnectivity", "WormholeFiles", "Foundation"]),
    "ConnectivityTesting": base.union(["WatchConnectivity", "WormholePeers", "Foundation"]),
    "WormholeTerminals": ["WormholeSystem"],
    "WormholeWorkshop": base.union(["WormholeEtcd", "WormholeTerminals", "WormholeShims", "Glibc"]),
    "WormholeCommand": base.union([
      "WormholeFiles", "GroupDefaults", "WormholePeers", "WormholeEtcd", "WormholeInspection",
      "WormholeTerminals",
    ]),
    "WormholeCinemaTime": base.union([
      "ConnectivityTesting", "WatchConnectivity", "WormholePeers", "WormholeInspection",
      "WormholeTerminals", "WormholeEtcd", "Foundation",
    ]),
    "WormholeTorture": base.union([
      "WormholePeers", "WormholeInspection", "WormholeTerminals", "WormholeWorkshop",
      "WormholeEtcd",
      "Foundation",
    ]),
    "WormholeBenchmarks": base.union([
      "WormholeFiles", "GroupDefaults", "WormholePeers", "WormholeEtcd", "WormholeInspection",
      "WormholeTerminals", "WormholeWorkshop", "Foundation",
    ]),
    // Runs processes step by step, by the functions that it puts in the place of the C library's.
    "WormholeSeam": [],
    "WormholeSchedules": base.union([
      "WormholeSeam", "WormholeFiles", "WormholeInspection", "WormholeTerminals",
      "WormholeWorkshop",
    ]),
    // The other process of many tests.
    "WormholeParticipant": base.union([
      "WormholeFiles", "GroupDefaults", "Communicator", "WatchConnectivity", "WormholePeers",
      "WormholeInspection", "WormholeEtcd", "WormholeTestSupport", "Foundation",
      "WormholeCinemaTutorial",
      "WormholeMainActorApp", "WormholeFoundationClients", "WormholeWatchClients",
      "WormholeCommunicatorClients", "WormholeDefaultsClients", "WormholeMessageClients",
      "WormholeNotifyClients",
    ]),
    // Code as users of the originals write it.
    "WormholeCinemaTutorial": ["WatchConnectivity", "Combine", "Foundation"],
    "WormholeMainActorApp": ["WatchConnectivity", "Foundation"],
    "WormholeWatchClients": ["WatchConnectivity"],
    "WormholeCommunicatorClients": ["Communicator"],
    "WormholeFoundationClients": ["NSFileCoordination"],
    "WormholeDefaultsClients": ["SharedUserDefaults", "Foundation"],
    "WormholeCombineClients": ["Combine", "SharedUserDefaults", "Foundation"],
    "WormholeNotifyClients": ["notify", "Foundation"],
    "WormholeMessageClients": ["MMWormhole", "WatchConnectivity", "Foundation"],
    "WormholeStepCounter": ["WatchConnectivity", "Foundation"],
  ]

  /// What every primitive stands on.
  private static let containers: Set<String> = [
    "Container", "Leases", "Root", "Names", "Errors", "Publications", "Hooks", "Digests",
  ]

  /// The folders of its own room whose declarations a folder may use.
  static let folders: [String: [String: Set<String>]] = [
    "WormholeSystem": [
      "SystemCalls": [],
      "Processes": ["SystemCalls"],
      "FileTrees": ["SystemCalls"],
      "Monitoring": ["SystemCalls"],
    ],
    "WormholePropertyLists": [
      "Limits": [], "Value": ["Limits"], "Binary": ["Limits", "Value"],
      "XML": ["Limits", "Value"],
      // Bytes of either format, checked, and values of a program's types.
      "Coding": ["Limits", "Value", "Binary", "XML"],
    ],
    "WormholeToolkit": [
      "SystemCalls": [], "Calls": ["SystemCalls"], "TreeCopies": ["SystemCalls"],
      "ChildProcesses": [],
    ],
    "WormholeEtcd": [
      "HTTP": [], "Client": ["HTTP"], "Container": ["HTTP", "Client"],
      "Values": ["Client", "Container"],
      "Notifications": ["Client", "Container", "Values"],
      "Presences": ["Client", "Container", "Values"],
      "Calls": ["Client", "Container", "Values"],
      "Queues": ["Client", "Container", "Values", "Presences"],
      "Logs": ["Client", "Container", "Values"],
      "Inspection": ["Client", "Container", "Values", "Presences", "Queues", "Copying"],
      "Copying": ["Client", "Container"],
    ],
    "Wormhole": [
      "Digests": [],
      "Hooks": [],
      "Publications": [],
      "Errors": ["Hooks"],
      "Names": ["Errors", "Hooks", "Digests"],
      // The open directory of a container, and what a crash or another program may have left there.
      "Root": ["Names", "Errors", "Publications", "Hooks"],
      "Leases": ["Root", "Names", "Errors", "Publications", "Hooks"],
      // What a program opens, and the engine behind it. Each primitive says beside its own code what it
      // needs of an engine.
      "Container": ["Leases", "Root", "Names", "Errors"],
      "Values": containers,
      // A lock without a process: a value with a time, and a number that guards changes.
      "Claims": containers.union(["Values"]),
      "Notifications": containers.union(["Values"]),
      "Presences": containers.union(["Values"]),
      "Entries": ["Root", "Names", "Errors"],
      "Queues": containers.union(["Values", "Presences", "Entries"]),
      "Logs": containers.union(["Values", "Presences", "Entries"]),
    ],
    "WormholeInspection": [
      "Inspection": [], "Copying": ["Inspection"],
    ],
    "WormholeFiles": [
      "Claims": [], "Presenters": ["Claims"], "Coordinator": ["Claims", "Presenters"],
    ],
    "WormholePeers": [
      "Names": [],
      "Launching": ["Names"],
      "Peers": ["Names", "Launching"],
      "Requests": [],
      "Delivery": ["Names", "Launching"],
      "Files": ["Names", "Delivery"],
      "Messages": ["Names", "Delivery", "Files"],
      "Session": ["Names", "Launching", "Peers", "Requests", "Delivery", "Files", "Messages"],
      "Pairing": ["Names", "Session"],
    ],
  ]

  /// Returns the faulty imports of a file of the target.
  static func findings(in text: SourceText, of target: String, path: String) -> [Finding] {
    guard let allowed = allowed[target] else {
      return [Finding(path, 1, "the table of layers has no row for \(target)")]
    }
    return imports(of: text).filter { !allowed.contains($0.module) }.map {
      Finding(path, $0.line, "\(target) may not import \($0.module)")
    }
  }

  /// Returns the uses of types that a folder below may not know, in the files of a room.
  static func folderFindings(
    in files: [(folder: String, path: String, text: SourceText)], room: String
  ) -> [Finding] {
    let rows = folders[room] ?? [:]
    let words = files.map(\.text.tokens)
    var homes: [String: Set<String>] = [:]
    for (file, words) in zip(files, words) {
      for name in declarations(in: words, of: types) {
        homes[name, default: []].insert(file.folder)
      }
    }
    var findings: [Finding] = []
    for (file, words) in zip(files, words) where file.folder != "" {
      guard let allowed = rows[file.folder] else {
        findings.append(Finding(file.path, 1, "the table of layers has no row for this folder"))
        continue
      }
      var previous = ""
      for word in words {
        defer { previous = word.text }
        // A name that two folders declare, as a nested type, says nothing.
        guard previous != ".", let home = homes[word.text], home.count == 1, let home = home.first,
          home != file.folder, home != "", !allowed.contains(home)
        else { continue }
        findings.append(
          Finding(file.path, word.line, "\(file.folder) may not use \(home)'s \(word.text)"))
      }
    }
    return findings
  }

  static let types: Set<String> = ["struct", "class", "enum", "protocol", "actor", "typealias"]

  /// Returns the names that a file declares outside any braces.
  static func declarations(
    in words: [(text: String, line: Int)], of kinds: Set<String>
  ) -> [String] {
    var depth = 0
    var names: [String] = []
    for (word, next) in zip(words, words.dropFirst()) {
      switch word.text {
      case "{": depth += 1
      case "}": depth -= 1
      default: if depth == 0, kinds.contains(word.text) { names.append(next.text) }
      }
    }
    return names
  }
}

/// A violation of the rules, with its place.
struct Finding: Equatable, CustomStringConvertible {
  let path: String
  let line: Int
  let message: String

  init(_ path: String, _ line: Int, _ message: String) {
    self.path = path
    self.line = line
    self.message = message
  }

  var description: String { "\(path):\(line): \(message)" }
}
