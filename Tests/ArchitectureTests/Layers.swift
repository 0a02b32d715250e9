/// Which modules each target may import, and so depend upon; one row a folder of Sources.
///
/// A new layer gets a row here, with what lies below it and nothing beside it.
enum Layers {
  private static let ours: Set<String> = [
    "SystemCalls", "PropertyLists", "AppGroup", "FileCoordination", "Wormhole", "GroupDefaults",
    "PeerConnectivity", "Histories",
  ]

  static let allowed: [String: Set<String>] = [
    "CSystemCalls": [],
    "SystemCalls": ["Glibc", "CSystemCalls", "Synchronization"],
    "PropertyLists": ["FoundationEssentials", "Synchronization"],
    "AppGroup": [
      "SystemCalls", "PropertyLists", "FoundationEssentials", "Dispatch", "Synchronization",
    ],
    "FileCoordination": [
      "AppGroup", "PropertyLists", "SystemCalls", "FoundationEssentials", "Dispatch",
      "Synchronization",
    ],
    "Wormhole": [
      "AppGroup", "PropertyLists", "FoundationEssentials", "Dispatch", "Synchronization",
    ],
    "GroupDefaults": [
      "AppGroup", "PropertyLists", "FoundationEssentials", "Dispatch", "Synchronization",
    ],
    "PeerConnectivity": [
      "AppGroup", "PropertyLists", "SystemCalls", "FoundationEssentials", "Dispatch",
      "Synchronization",
    ],
    "WatchConnectivity": [
      "PeerConnectivity", "AppGroup", "PropertyLists", "Foundation", "Dispatch", "Synchronization",
    ],
    "Communicator": [
      "WatchConnectivity", "PropertyLists", "Foundation", "Dispatch", "Synchronization",
    ],
    "WormholeCommand": [
      "FileCoordination", "GroupDefaults", "Wormhole", "PeerConnectivity", "AppGroup",
      "PropertyLists", "SystemCalls", "Terminals", "FoundationEssentials", "Dispatch",
      "Synchronization",
    ],
    "Terminals": ["SystemCalls"],
    "QRCodes": [],
    "CinemaTime": [
      "WatchConnectivity", "PeerConnectivity", "AppGroup", "PropertyLists", "SystemCalls",
      "Terminals", "QRCodes", "Foundation", "Dispatch", "Synchronization",
    ],
    "Histories": ["Synchronization"],
    // The other process of many tests.
    "participant": [
      "FileCoordination", "GroupDefaults", "Communicator", "WatchConnectivity",
      "PeerConnectivity", "AppGroup", "PropertyLists", "SystemCalls", "TestSupport", "Foundation",
      "FoundationEssentials", "CinemaTutorial", "MainActorApp",
    ],
    // Code as users of WatchConnectivity write it.
    "CinemaTutorial": ["WatchConnectivity", "Foundation"],
    "MainActorApp": ["WatchConnectivity", "Foundation"],
    "Torture": ours.union(["Foundation", "FoundationEssentials", "Dispatch", "Synchronization"]),
    "Benchmarks": ours.union(["Foundation", "FoundationEssentials", "Dispatch", "Synchronization"]),
  ]

  /// What is wrong with the imports of a file of the target.
  static func findings(in text: SourceText, of target: String, path: String) -> [Finding] {
    guard let allowed = allowed[target] else {
      return [Finding(path, 1, "the table of layers has no row for \(target)")]
    }
    return imports(of: text).filter { !allowed.contains($0.module) }.map {
      Finding(path, $0.line, "\(target) may not import \($0.module)")
    }
  }
}

/// Something against the rules, and where.
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
