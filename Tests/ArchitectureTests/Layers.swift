/// What each room may import and depend on.
///
/// A new room gets a row here, with what lies below it and nothing beside it.
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

  /// Returns the faulty imports of a file of the target.
  static func findings(in text: SourceText, of target: String, path: String) -> [Finding] {
    guard let allowed = allowed[target] else {
      return [Finding(path, 1, "the table of layers has no row for \(target)")]
    }
    return imports(of: text).filter { !allowed.contains($0.module) }.map {
      Finding(path, $0.line, "\(target) may not import \($0.module)")
    }
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
