/// The modules that each target may import and depend on; one row for each folder of Sources.
///
/// A new layer gets a row here, with the modules below it and none beside it.
enum Layers {
  private static let ours: Set<String> = [
    "SystemCalls", "PropertyLists", "AppGroup", "FileCoordination", "Wormhole", "GroupDefaults",
    "PeerConnectivity", "Histories",
  ]

  private static let system: Set<String> = [
    "SystemCalls", "PropertyLists", "FoundationEssentials", "Dispatch", "Synchronization",
  ]

  static let allowed: [String: Set<String>] = [
    "CSystemCalls": [],
    "SystemCalls": ["Glibc", "CSystemCalls", "Synchronization"],
    "LineProcesses": ["SystemCalls", "Synchronization"],
    "CCurl": [],
    "HTTPTransfers": ["CCurl", "SystemCalls", "Synchronization"],
    "EtcdClient": [
      "HTTPTransfers", "Monitoring", "SystemCalls", "FoundationEssentials", "Dispatch",
      "Synchronization",
    ],
    "PropertyLists": ["FoundationEssentials", "Synchronization"],
    "Monitoring": ["SystemCalls", "Dispatch", "Synchronization"],
    "Hooks": ["SystemCalls", "Monitoring", "Dispatch", "Synchronization"],
    "Publications": system,
    "Digests": [],
    "Containers": system.union([
      "Digests", "EtcdClient", "HTTPTransfers", "Publications", "Hooks", "Monitoring",
    ]),
    "Values": system.union([
      "EtcdClient", "Publications", "Monitoring", "Containers", "Observation",
    ]),
    "Notifications": system.union(["EtcdClient", "Monitoring", "Containers", "Values"]),
    "Presences": system.union(["EtcdClient", "Monitoring", "Containers", "Values"]),
    "Entries": system.union(["Containers"]),
    "Calls": system.union(["EtcdClient", "Monitoring", "Containers", "Values", "Entries"]),
    "QueueFiles": system.union(["Digests", "EtcdClient", "Monitoring", "Containers", "Entries"]),
    "Queues": system.union([
      "EtcdClient", "Monitoring", "Containers", "Values", "Entries", "Presences", "QueueFiles",
    ]),
    "Attachments": system.union([
      "Digests", "EtcdClient", "Monitoring", "Containers", "Entries", "QueueFiles", "Queues",
    ]),
    "Logs": system.union([
      "Publications", "Monitoring", "Containers", "Values", "Entries", "Presences",
    ]),
    "Inspection": system.union([
      "EtcdClient", "Publications", "Monitoring", "Containers", "Values", "Notifications",
      "Entries", "Presences", "Calls", "QueueFiles", "Queues", "Logs",
    ]),
    "FileTrees": ["SystemCalls"],
    "Copying": system.union([
      "FileTrees", "Digests", "EtcdClient", "Publications", "Containers", "Values",
      "Notifications", "Entries", "Presences", "QueueFiles", "Queues", "Inspection",
    ]),
    // All of the above in one import.
    "AppGroup": [
      "Publications", "Digests", "Monitoring", "Containers", "Values", "Notifications", "Entries",
      "Presences", "Calls", "QueueFiles", "Queues", "Attachments", "Logs", "Inspection", "Copying",
    ],
    "FileClaims": ["FileTrees", "AppGroup", "SystemCalls", "Synchronization"],
    "FileCoordination": [
      "FileClaims", "AppGroup", "PropertyLists", "SystemCalls", "FoundationEssentials", "Dispatch",
      "Synchronization",
    ],
    "NSFileCoordination": [
      "FileCoordination", "AppGroup", "Foundation", "Dispatch", "Synchronization",
    ],
    "Wormhole": [
      "AppGroup", "PropertyLists", "FoundationEssentials", "Dispatch", "Synchronization",
    ],
    "MMWormhole": [
      "WatchConnectivity", "AppGroup", "PropertyLists", "Foundation", "Dispatch",
      "Synchronization",
    ],
    "GroupDefaults": [
      "AppGroup", "PropertyLists", "FoundationEssentials", "Dispatch", "Synchronization",
    ],
    "SharedUserDefaults": ["GroupDefaults", "Foundation"],
    "PeerLaunching": system.union(["AppGroup"]),
    "PeerConnectivity": system.union(["PeerLaunching", "AppGroup"]),
    "WatchPairing": [
      "PeerLaunching", "AppGroup", "PropertyLists", "Dispatch", "Synchronization",
    ],
    "KeyValueObserving": ["AppGroup", "Foundation", "Synchronization"],
    "WatchConnectivity": [
      "KeyValueObserving", "WatchPairing", "PeerConnectivity", "AppGroup", "PropertyLists",
      "Foundation", "Dispatch", "Synchronization",
    ],
    "Communicator": [
      "WatchConnectivity", "PropertyLists", "Foundation", "Dispatch", "Synchronization",
    ],
    "ConnectivityTesting": [
      "WatchConnectivity", "WatchPairing", "PeerConnectivity", "LineProcesses", "AppGroup",
      "PropertyLists", "SystemCalls", "Foundation", "Dispatch", "Synchronization",
    ],
    "WormholeCommand": [
      "FileCoordination", "GroupDefaults", "Wormhole", "WatchPairing", "PeerConnectivity",
      "AppGroup", "PropertyLists", "SystemCalls", "Terminals", "Measurements",
      "FoundationEssentials", "Dispatch", "Synchronization",
    ],
    "Terminals": ["SystemCalls"],
    "CinemaTime": [
      "ConnectivityTesting",
      "WatchConnectivity", "WatchPairing", "PeerConnectivity", "AppGroup", "PropertyLists",
      "SystemCalls", "Terminals", "Foundation", "Dispatch", "Synchronization",
    ],
    "Histories": ["Synchronization"],
    // The other process of many tests.
    "participant": [
      "FileCoordination", "GroupDefaults", "Communicator", "WatchConnectivity",
      "PeerConnectivity", "AppGroup", "PropertyLists", "SystemCalls", "TestSupport", "Foundation",
      "FoundationEssentials", "CinemaTutorial", "MainActorApp", "FoundationClients", "WatchClients",
      "CommunicatorClients", "DefaultsClients", "WormholeClients",
    ],
    // Code as users of WatchConnectivity write it.
    "CinemaTutorial": ["WatchConnectivity", "Foundation"],
    "MainActorApp": ["WatchConnectivity", "Foundation"],
    "WatchClients": ["WatchConnectivity"],
    "CommunicatorClients": ["Communicator"],
    "FoundationClients": ["NSFileCoordination"],
    "DefaultsClients": ["SharedUserDefaults", "Foundation"],
    "WormholeClients": ["MMWormhole", "WatchConnectivity", "Foundation"],
    "StepCounter": ["WatchConnectivity", "Foundation"],
    "LocalEtcd": [
      "RivalCalls", "EtcdClient", "HTTPTransfers", "SystemCalls", "Synchronization",
    ],
    "Torture": ours.union([
      "LocalEtcd", "EtcdClient", "LineProcesses", "Foundation", "FoundationEssentials", "Dispatch",
      "Synchronization",
    ]),
    // Calls that the library must not contain, but that measuring a rival needs, or disturbing a server.
    "RivalCalls": ["Glibc", "SystemCalls"],
    "Measurements": [
      "FileTrees", "RivalCalls", "AppGroup", "PropertyLists", "SystemCalls", "FoundationEssentials",
      "Dispatch", "Synchronization",
    ],
    "Benchmarks": ours.union([
      "Measurements", "RivalCalls", "LineProcesses", "Foundation", "FoundationEssentials",
      "Dispatch",
      "Synchronization",
    ]),
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
