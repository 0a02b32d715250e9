// swift-tools-version: 6.2
import PackageDescription

let settings: [SwiftSetting] = [
  .swiftLanguageMode(.v6),
  .treatAllWarnings(as: .error),
  .enableUpcomingFeature("MemberImportVisibility"),
  .enableUpcomingFeature("InternalImportsByDefault"),
  .enableUpcomingFeature("ExistentialAny"),
]

let package = Package(
  name: "wormhole",
  products: [
    .library(name: "PropertyLists", targets: ["PropertyLists"]),
    .library(name: "AppGroup", targets: ["AppGroup"]),
    .library(name: "FileCoordination", targets: ["FileCoordination"]),
    .library(name: "NSFileCoordination", targets: ["NSFileCoordination"]),
    .library(name: "SharedUserDefaults", targets: ["SharedUserDefaults"]),
    .library(name: "Wormhole", targets: ["Wormhole"]),
    .library(name: "MMWormhole", targets: ["MMWormhole"]),
    .library(name: "GroupDefaults", targets: ["GroupDefaults"]),
    .library(name: "PeerConnectivity", targets: ["PeerConnectivity"]),
    .library(name: "WatchConnectivity", targets: ["WatchConnectivity"]),
    .library(name: "Communicator", targets: ["Communicator"]),
    .library(name: "ConnectivityTesting", targets: ["ConnectivityTesting"]),
    .executable(name: "cinematime", targets: ["CinemaTime"]),
    .executable(name: "wormhole", targets: ["WormholeCommand"]),
    .executable(name: "benchmarks", targets: ["Benchmarks"]),
    .executable(name: "torture", targets: ["Torture"]),
  ],
  targets: [
    // The layers, bottom-up. A layer imports only what lies below it; Tests/ArchitectureTests reads every import line.

    // Functions that Glibc's module lacks: renameat2, openat2, … (headers only).
    .systemLibrary(name: "CSystemCalls", path: "Sources/Core/CSystemCalls"),
    // Calls the kernel, owns descriptors, turns -1 into an error; the only importer of Glibc.
    .target(
      name: "SystemCalls", dependencies: ["CSystemCalls"], path: "Sources/Core/SystemCalls",
      swiftSettings: settings),
    // A child program that is driven line by line; every wait has a deadline.
    .target(
      name: "LineProcesses", dependencies: ["SystemCalls"], path: "Sources/Core/LineProcesses",
      swiftSettings: settings),
    // libcurl's functions, found at run time (headers only).
    .systemLibrary(name: "CCurl", path: "Sources/Core/CCurl"),
    // Requests and streams of HTTP, by the system's libcurl, which is loaded at the first of them.
    .target(
      name: "HTTPTransfers", dependencies: ["CCurl", "SystemCalls"],
      path: "Sources/Core/HTTPTransfers", swiftSettings: settings),
    // A client of etcd: reads, transactions, leases, watches. Knows no container.
    .target(
      name: "EtcdClient", dependencies: ["HTTPTransfers", "Monitoring", "SystemCalls"],
      path: "Sources/Core/EtcdClient", swiftSettings: settings),
    // Property-list values, a bounded codec, and the guard that any foreign bytes pass first.
    .target(name: "PropertyLists", path: "Sources/Core/PropertyLists", swiftSettings: settings),
    // What a publication tells about itself: its publisher and its expiry, in the file of its content.
    .target(
      name: "Publications", dependencies: ["PropertyLists", "SystemCalls"],
      path: "Sources/Core/Publications", swiftSettings: settings),
    // Wakes waiters when something may have changed: inotify, one thread; waiting as a thread or a task.
    .target(
      name: "Monitoring", dependencies: ["SystemCalls"], path: "Sources/Core/Monitoring",
      swiftSettings: settings),
    // The hooks for a program's log and metrics.
    .target(
      name: "Hooks", dependencies: ["Monitoring", "SystemCalls"], path: "Sources/Core/Hooks",
      swiftSettings: settings),
    // Hash functions: of long names, and of files.
    .target(name: "Digests", path: "Sources/Core/Digests", swiftSettings: settings),
    // The container's directory, and its leases; a container on etcd.
    .target(
      name: "Containers",
      dependencies: [
        "Digests", "EtcdClient", "HTTPTransfers", "Publications", "Hooks", "Monitoring",
        "PropertyLists",
        "SystemCalls",
      ],
      path: "Sources/Core/Containers", swiftSettings: settings),
    // Values: read without a lock, changed under a lease, observed; several in one step.
    .target(
      name: "Values",
      dependencies: [
        "Containers", "EtcdClient", "Publications", "Monitoring", "PropertyLists", "SystemCalls",
      ],
      path: "Sources/Core/Values", swiftSettings: settings),
    // Names that can be posted and heard.
    .target(
      name: "Notifications",
      dependencies: [
        "Values", "Containers", "EtcdClient", "Monitoring", "PropertyLists", "SystemCalls",
      ],
      path: "Sources/Core/Notifications", swiftSettings: settings),
    // Which processes are present.
    .target(
      name: "Presences",
      dependencies: [
        "Values", "Containers", "EtcdClient", "Monitoring", "PropertyLists", "SystemCalls",
      ],
      path: "Sources/Core/Presences", swiftSettings: settings),
    // Entries that wait in a directory: their names, their order, the room for them.
    .target(
      name: "Entries", dependencies: ["Containers", "PropertyLists", "SystemCalls"],
      path: "Sources/Core/Entries", swiftSettings: settings),
    // Calls between live processes, through mailboxes.
    .target(
      name: "Calls",
      dependencies: [
        "Entries", "Values", "Containers", "EtcdClient", "Monitoring", "PropertyLists",
        "SystemCalls",
      ],
      path: "Sources/Core/Calls", swiftSettings: settings),
    // The files of a queue's directory, and the steps that make and move them.
    .target(
      name: "QueueFiles",
      dependencies: [
        "Digests", "Monitoring", "Entries", "Containers", "EtcdClient", "PropertyLists",
        "SystemCalls",
      ],
      path: "Sources/Core/QueueFiles", swiftSettings: settings),
    // Queues that outlive their processes, with receipts and attachments.
    .target(
      name: "Queues",
      dependencies: [
        "QueueFiles", "Entries", "Presences", "Values", "Containers", "EtcdClient", "Monitoring",
        "PropertyLists", "SystemCalls",
      ],
      path: "Sources/Core/Queues", swiftSettings: settings),
    // Files that accompany entries of queues.
    .target(
      name: "Attachments",
      dependencies: [
        "Digests", "Queues", "QueueFiles", "Entries", "Containers", "EtcdClient", "PropertyLists",
        "SystemCalls",
      ],
      path: "Sources/Core/Attachments", swiftSettings: settings),
    // Channels with history: messages with consecutive numbers, and subscribers at their own pace.
    .target(
      name: "Logs",
      dependencies: [
        "Entries", "Presences", "Values", "Containers", "Publications", "Monitoring",
        "PropertyLists", "SystemCalls",
      ],
      path: "Sources/Core/Logs", swiftSettings: settings),
    // The content of a container, and its faults.
    .target(
      name: "Inspection",
      dependencies: [
        "Logs", "QueueFiles", "Queues", "Calls", "Entries", "Presences", "Notifications", "Values",
        "Containers",
        "EtcdClient", "Publications", "Monitoring", "PropertyLists", "SystemCalls",
      ],
      path: "Sources/Core/Inspection", swiftSettings: settings),
    // Copying, comparing, synchronizing and removing a file, or a directory with all below it.
    .target(
      name: "FileTrees", dependencies: ["SystemCalls"], path: "Sources/Core/FileTrees",
      swiftSettings: settings),
    // A whole container, as keys, from one place to another: a directory or etcd.
    .target(
      name: "Copying",
      dependencies: [
        "FileTrees", "Inspection", "Digests", "QueueFiles", "Queues", "Entries", "Presences",
        "Notifications", "Values", "Containers", "EtcdClient", "Publications", "PropertyLists",
        "SystemCalls",
      ],
      path: "Sources/Core/Copying", swiftSettings: settings),
    // The core in one import.
    .target(
      name: "AppGroup",
      dependencies: [
        "Copying", "Digests", "Attachments", "Inspection", "Logs", "QueueFiles", "Queues", "Calls",
        "Entries",
        "Presences", "Notifications", "Values",
        "Containers", "Publications", "Monitoring",
      ],
      path: "Sources/Facades/AppGroup", swiftSettings: settings),
    // Which process has an item: claims beside it, private copies, publishing.
    .target(
      name: "FileClaims", dependencies: ["FileTrees", "AppGroup", "SystemCalls"],
      path: "Sources/Facades/FileClaims", swiftSettings: settings),
    // Coordinated access to any file or directory, inside a container or not; presenters.
    .target(
      name: "FileCoordination",
      dependencies: ["FileClaims", "AppGroup", "PropertyLists", "SystemCalls"],
      path: "Sources/Facades/FileCoordination", swiftSettings: settings),
    // NSFileCoordinator and its kin (source-compatible) over FileCoordination, for code that imports Foundation.
    .target(
      name: "NSFileCoordination", dependencies: ["FileCoordination", "AppGroup"],
      path: "Sources/Facades/NSFileCoordination", swiftSettings: settings),
    // Messages by identifier: Channel (typed, async).
    .target(
      name: "Wormhole", dependencies: ["AppGroup", "PropertyLists"],
      path: "Sources/Facades/Wormhole", swiftSettings: settings),
    // UserDefaults(suiteName:) between processes: GroupDefaults (source-compatible, and throwing, async).
    .target(
      name: "GroupDefaults", dependencies: ["AppGroup", "PropertyLists"],
      path: "Sources/Facades/GroupDefaults", swiftSettings: settings),
    // GroupDefaults under the name of Foundation's class, for code that imports Foundation.
    .target(
      name: "SharedUserDefaults", dependencies: ["GroupDefaults"],
      path: "Sources/Facades/SharedUserDefaults", swiftSettings: settings),
    // Names and errors of peers, and how a peer is started.
    .target(
      name: "PeerLaunching", dependencies: ["AppGroup", "PropertyLists", "SystemCalls"],
      path: "Sources/Facades/PeerLaunching", swiftSettings: settings),
    // Named peers: requests, guaranteed messages, contexts, files.
    .target(
      name: "PeerConnectivity",
      dependencies: ["PeerLaunching", "AppGroup", "PropertyLists", "SystemCalls"],
      path: "Sources/Facades/PeerConnectivity", swiftSettings: settings),
    // Which watches a phone has; by itself, because `wormhole` starts faster without Foundation.
    .target(
      name: "WatchPairing", dependencies: ["PeerLaunching", "AppGroup", "PropertyLists"],
      path: "Sources/Facades/WatchPairing", swiftSettings: settings),
    // Observing properties by key path, which Foundation on Linux lacks.
    .target(
      name: "KeyValueObserving", dependencies: ["AppGroup"],
      path: "Sources/Facades/KeyValueObserving", swiftSettings: settings),
    // WCSession and what belongs to it (source-compatible): a phone and a watch over PeerSession.
    .target(
      name: "WatchConnectivity",
      dependencies: [
        "KeyValueObserving", "WatchPairing", "PeerConnectivity", "AppGroup", "PropertyLists",
      ],
      path: "Sources/Facades/WatchConnectivity", swiftSettings: settings),
    // Communicator 4.1 (source-compatible), over WCSession.
    .target(
      name: "Communicator", dependencies: ["WatchConnectivity", "PropertyLists"],
      path: "Sources/Facades/Communicator", swiftSettings: settings),

    // MMWormhole 2.0 (source-compatible), over values and WCSession.
    .target(
      name: "MMWormhole", dependencies: ["WatchConnectivity", "AppGroup", "PropertyLists"],
      path: "Sources/Facades/MMWormhole", swiftSettings: settings),

    // For tests of code that uses WatchConnectivity: sessions, counterparts and processes of a test's own.
    .target(
      name: "ConnectivityTesting",
      dependencies: [
        "WatchConnectivity", "WatchPairing", "PeerConnectivity", "LineProcesses", "AppGroup",
        "PropertyLists", "SystemCalls",
      ],
      path: "Sources/Facades/ConnectivityTesting", swiftSettings: settings),

    // The programs.

    // The output of demonstrations at a terminal.
    .target(
      name: "Terminals", dependencies: ["SystemCalls"], path: "Sources/Programs/Terminals",
      swiftSettings: settings),
    // `cinematime`: a phone and a watch keep tickets in step.
    .executableTarget(
      name: "CinemaTime",
      dependencies: [
        "ConnectivityTesting", "WatchConnectivity", "WatchPairing", "PeerConnectivity", "AppGroup",
        "PropertyLists", "SystemCalls", "Terminals",
      ],
      path: "Sources/Programs/CinemaTime",
      resources: [.embedInCode("../../../Fixtures/movies.json")], swiftSettings: settings),
    // `wormhole`: the same for anyone with a shell.
    .executableTarget(
      name: "WormholeCommand",
      dependencies: [
        "FileCoordination", "GroupDefaults", "Wormhole", "WatchPairing", "PeerConnectivity",
        "AppGroup", "PropertyLists", "SystemCalls", "Terminals", "Measurements",
      ],
      path: "Sources/Programs/WormholeCommand",
      resources: [.embedInCode("ManualPages/OnDiskFormat.md")], swiftSettings: settings),
    // Is a recorded history of reads, writes and compare-and-swaps linearizable?
    .target(name: "Histories", path: "Sources/Workshop/Histories", swiftSettings: settings),
    // An etcd on this machine whose members and connections can be disturbed.
    .target(
      name: "LocalEtcd",
      dependencies: ["RivalCalls", "EtcdClient", "HTTPTransfers", "SystemCalls"],
      path: "Sources/Workshop/LocalEtcd", swiftSettings: settings),
    // Tries to break the promises with real processes, stopped and killed at random.
    .executableTarget(
      name: "Torture",
      dependencies: [
        "Histories", "LocalEtcd", "EtcdClient", "Wormhole", "PeerConnectivity", "LineProcesses",
        "AppGroup", "PropertyLists", "SystemCalls",
      ],
      path: "Sources/Workshop/Torture", swiftSettings: settings),
    // Calls that only measured rivals and disturbed servers need: sockets, shared libraries, calls that
    // block.
    .target(
      name: "RivalCalls", dependencies: ["SystemCalls"], path: "Sources/Workshop/RivalCalls",
      swiftSettings: settings),
    // Rows of measurements, each beside a floor taken in the same run.
    .target(
      name: "Measurements",
      dependencies: ["FileTrees", "RivalCalls", "AppGroup", "PropertyLists", "SystemCalls"],
      path: "Sources/Workshop/Measurements", swiftSettings: settings),
    // Measures every promise of speed.
    .executableTarget(
      name: "Benchmarks",
      dependencies: [
        "Measurements", "RivalCalls", "LineProcesses",
        "FileCoordination", "GroupDefaults", "Wormhole", "PeerConnectivity", "AppGroup",
        "PropertyLists", "SystemCalls",
      ],
      path: "Sources/Workshop/Benchmarks", swiftSettings: settings),

    // The tests, one target for each layer.

    .target(
      name: "TestSupport",
      dependencies: [
        "FileCoordination", "AppGroup", "LocalEtcd", "EtcdClient", "HTTPTransfers", "SystemCalls",
      ],
      path: "Tests/TestSupport", swiftSettings: settings),
    // The threads, and the process, in which a test runs.
    .target(
      name: "TestScopes", dependencies: ["TestSupport", "AppGroup", "SystemCalls"],
      path: "Tests/TestScopes", swiftSettings: settings),
    .executableTarget(
      name: "participant",
      dependencies: [
        "FileCoordination", "GroupDefaults", "Communicator", "WatchConnectivity",
        "PeerConnectivity", "AppGroup", "PropertyLists", "SystemCalls", "TestSupport",
        "CinemaTutorial", "MainActorApp", "FoundationClients", "WatchClients",
        "CommunicatorClients", "DefaultsClients", "WormholeClients",
      ],
      path: "Tests/Participant", swiftSettings: settings),
    .testTarget(name: "ArchitectureTests", dependencies: ["TestScopes"], swiftSettings: settings),
    .testTarget(
      name: "SystemCallsTests", dependencies: ["SystemCalls", "TestScopes", "TestSupport"],
      swiftSettings: settings),
    .testTarget(
      name: "HTTPTransfersTests",
      dependencies: ["HTTPTransfers", "CCurl", "SystemCalls", "TestScopes", "TestSupport"],
      swiftSettings: settings),
    .testTarget(
      name: "EtcdClientTests",
      dependencies: ["EtcdClient", "HTTPTransfers", "SystemCalls", "TestScopes", "TestSupport"],
      swiftSettings: settings),
    .testTarget(
      name: "PropertyListsTests", dependencies: ["PropertyLists", "TestScopes", "TestSupport"],
      swiftSettings: settings),
    .testTarget(
      name: "AppGroupTests",
      dependencies: [
        "AppGroup", "Copying", "EtcdClient", "HTTPTransfers", "Inspection", "Logs", "Queues",
        "Calls",
        "Entries",
        "Presences",
        "Notifications", "Values", "Containers", "Publications", "Monitoring", "PropertyLists",
        "SystemCalls", "TestScopes", "TestSupport", "participant",
      ],
      swiftSettings: settings),
    .testTarget(
      name: "FileSystemTests",
      dependencies: [
        "FileCoordination", "GroupDefaults", "AppGroup", "PropertyLists", "SystemCalls",
        "TestScopes", "TestSupport", "WormholeCommand", "participant",
      ],
      swiftSettings: settings),
    .testTarget(
      name: "FileCoordinationTests",
      dependencies: [
        "FileCoordination", "FileClaims", "FileTrees", "AppGroup", "PropertyLists", "SystemCalls",
        "TestScopes", "TestSupport", "participant",
      ],
      swiftSettings: settings),
    .testTarget(
      name: "NSFileCoordinationTests",
      dependencies: [
        "NSFileCoordination", "FoundationClients", "TestScopes", "TestSupport", "participant",
      ],
      exclude: ["Clients"], swiftSettings: settings),
    // Code written for Apple's Foundation, in the language mode that most of it is written in.
    .target(
      name: "FoundationClients", dependencies: ["NSFileCoordination"],
      path: "Tests/NSFileCoordinationTests/Clients",
      swiftSettings: [.swiftLanguageMode(.v5), .treatAllWarnings(as: .error)]),
    .testTarget(
      name: "WormholeTests",
      dependencies: [
        "Wormhole", "AppGroup", "PropertyLists", "SystemCalls", "TestScopes", "TestSupport",
        "participant",
      ],
      swiftSettings: settings),
    .testTarget(
      name: "MMWormholeTests",
      dependencies: [
        "MMWormhole", "WormholeClients", "WormholeCommand", "AppGroup", "PropertyLists",
        "SystemCalls", "TestScopes", "TestSupport", "participant",
      ],
      exclude: ["Clients"], swiftSettings: settings),
    // Code written for the original, in the language mode that most of it is written in.
    .target(
      name: "WormholeClients", dependencies: ["MMWormhole"],
      path: "Tests/MMWormholeTests/Clients",
      swiftSettings: [.swiftLanguageMode(.v5), .treatAllWarnings(as: .error)]),
    .testTarget(
      name: "GroupDefaultsTests",
      dependencies: [
        "GroupDefaults", "AppGroup", "PropertyLists", "SystemCalls", "TestScopes", "TestSupport",
        "participant",
      ],
      exclude: ["Clients"], swiftSettings: settings),
    .target(
      name: "DefaultsClients", dependencies: ["SharedUserDefaults"],
      path: "Tests/GroupDefaultsTests/Clients",
      swiftSettings: [.swiftLanguageMode(.v5), .treatAllWarnings(as: .error)]),
    .testTarget(
      name: "PeerConnectivityTests",
      dependencies: [
        "PeerConnectivity", "PeerLaunching", "AppGroup", "PropertyLists", "SystemCalls",
        "TestScopes", "TestSupport", "participant",
      ],
      swiftSettings: settings),
    .testTarget(
      name: "WatchConnectivityTests",
      dependencies: [
        "WatchConnectivity", "KeyValueObserving", "WatchPairing", "PeerConnectivity",
        "LineProcesses", "AppGroup", "PropertyLists", "SystemCalls", "TestScopes", "TestSupport",
        "participant",
      ],
      exclude: ["Tutorial", "MainActorApp", "Clients"], swiftSettings: settings),
    // Code written for Apple's framework, in the language mode that most of it is written in.
    .target(
      name: "CinemaTutorial", dependencies: ["WatchConnectivity"],
      path: "Tests/WatchConnectivityTests/Tutorial",
      swiftSettings: [.swiftLanguageMode(.v5), .treatAllWarnings(as: .error)]),
    // The same, importing nothing else.
    .target(
      name: "WatchClients", dependencies: ["WatchConnectivity"],
      path: "Tests/WatchConnectivityTests/Clients",
      swiftSettings: [.swiftLanguageMode(.v5), .treatAllWarnings(as: .error)]),
    // The same, in a target whose default isolation is the main actor, as new apps have it.
    .target(
      name: "MainActorApp", dependencies: ["WatchConnectivity"],
      path: "Tests/WatchConnectivityTests/MainActorApp",
      swiftSettings: [
        .swiftLanguageMode(.v6), .defaultIsolation(MainActor.self),
        .treatAllWarnings(as: .error),
      ]),
    .testTarget(
      name: "CommunicatorTests",
      dependencies: [
        "Communicator", "WatchConnectivity", "WatchPairing", "PeerConnectivity", "AppGroup",
        "PropertyLists", "SystemCalls", "TestScopes", "TestSupport", "participant",
      ],
      exclude: ["Clients"], swiftSettings: settings),
    // Code written for the original, importing nothing else.
    .target(
      name: "CommunicatorClients", dependencies: ["Communicator"],
      path: "Tests/CommunicatorTests/Clients",
      swiftSettings: [.swiftLanguageMode(.v5), .treatAllWarnings(as: .error)]),
    .testTarget(
      name: "CommandTests",
      dependencies: [
        "WormholeCommand", "Measurements", "LineProcesses", "AppGroup", "PropertyLists",
        "SystemCalls", "Terminals", "TestScopes", "TestSupport",
      ],
      swiftSettings: settings),
    .testTarget(
      name: "CinemaTimeTests",
      dependencies: [
        "CinemaTime", "ConnectivityTesting", "WatchConnectivity", "WatchPairing",
        "PeerConnectivity", "LineProcesses", "AppGroup", "PropertyLists", "SystemCalls",
        "Terminals", "TestScopes", "TestSupport",
      ],
      swiftSettings: settings),
    .testTarget(
      name: "ConnectivityTestingTests",
      dependencies: [
        "ConnectivityTesting", "StepCounter", "Communicator", "WatchConnectivity", "WatchPairing",
        "PeerConnectivity", "AppGroup", "PropertyLists", "SystemCalls", "TestScopes",
        "TestSupport", "participant",
      ],
      swiftSettings: settings),
    // An app's code and its tests, as the page "Test both sides" shows them.
    .target(
      name: "StepCounter", dependencies: ["WatchConnectivity"],
      path: "Tests/BothSides/StepCounter",
      swiftSettings: [.swiftLanguageMode(.v6), .treatAllWarnings(as: .error)]),
    .testTarget(
      name: "BothSides", dependencies: ["StepCounter", "ConnectivityTesting", "WatchConnectivity"],
      path: "Tests/BothSides/Tests",
      swiftSettings: [.swiftLanguageMode(.v6), .treatAllWarnings(as: .error)]),
    .testTarget(
      name: "TortureTests",
      dependencies: [
        "Torture", "Histories", "EtcdClient", "AppGroup", "PropertyLists", "SystemCalls",
        "TestScopes", "TestSupport",
      ],
      swiftSettings: settings),
  ]
)
