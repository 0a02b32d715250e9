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
    .library(name: "Wormhole", targets: ["Wormhole"]),
    .library(name: "GroupDefaults", targets: ["GroupDefaults"]),
    .library(name: "PeerConnectivity", targets: ["PeerConnectivity"]),
    .library(name: "WatchConnectivity", targets: ["WatchConnectivity"]),
    .library(name: "Communicator", targets: ["Communicator"]),
    .executable(name: "cinematime", targets: ["CinemaTime"]),
    .executable(name: "wormhole", targets: ["WormholeCommand"]),
    .executable(name: "benchmarks", targets: ["Benchmarks"]),
    .executable(name: "torture", targets: ["Torture"]),
  ],
  targets: [
    // The layers, bottom-up. A layer imports only what lies below it; Tests/ArchitectureTests reads every import line.

    // What Glibc's module lacks: renameat2, openat2, statx constants … (headers only).
    .systemLibrary(name: "CSystemCalls"),
    // Calls the kernel, owns descriptors, turns -1 into an error; the only importer of Glibc.
    .target(name: "SystemCalls", dependencies: ["CSystemCalls"], swiftSettings: settings),
    // Property-list values, a bounded codec, and the guard that any foreign bytes pass first.
    .target(name: "PropertyLists", swiftSettings: settings),
    // The container and its primitives: values, notifications; leases and the change monitor beneath them.
    .target(
      name: "AppGroup", dependencies: ["SystemCalls", "PropertyLists"], swiftSettings: settings),
    // Coordinated access to any file or directory, inside a container or not.
    .target(
      name: "FileCoordination", dependencies: ["AppGroup", "PropertyLists", "SystemCalls"],
      swiftSettings: settings),
    // Messages by identifier: MMWormhole (source-compatible) and Channel (typed, async).
    .target(
      name: "Wormhole", dependencies: ["AppGroup", "PropertyLists"], swiftSettings: settings),
    // UserDefaults(suiteName:) between processes: GroupDefaults (source-compatible, and throwing, async).
    .target(
      name: "GroupDefaults", dependencies: ["AppGroup", "PropertyLists"], swiftSettings: settings),
    // Named peers: requests, guaranteed messages, contexts, files, wake-up.
    .target(
      name: "PeerConnectivity", dependencies: ["AppGroup", "PropertyLists", "SystemCalls"],
      swiftSettings: settings),
    // WCSession and what belongs to it (source-compatible): a phone and a watch over PeerSession.
    .target(
      name: "WatchConnectivity", dependencies: ["PeerConnectivity", "AppGroup", "PropertyLists"],
      swiftSettings: settings),
    // Communicator 4.1 (source-compatible), over WCSession.
    .target(
      name: "Communicator", dependencies: ["WatchConnectivity", "PropertyLists"],
      swiftSettings: settings),

    // The programs.

    // What programs show at a terminal: sentences, colours, the stage of a demonstration, a screen.
    .target(name: "Terminals", dependencies: ["SystemCalls"], swiftSettings: settings),
    // QR codes and the PNG files of them, by their standards.
    .target(name: "QRCodes", swiftSettings: settings),
    // `cinematime`: a phone and a watch keep tickets in step.
    .executableTarget(
      name: "CinemaTime",
      dependencies: [
        "WatchConnectivity", "PeerConnectivity", "AppGroup", "PropertyLists", "SystemCalls",
        "Terminals", "QRCodes",
      ],
      resources: [.embedInCode("../../Fixtures/movies.json")], swiftSettings: settings),
    // `wormhole`: the same for anyone with a shell.
    .executableTarget(
      name: "WormholeCommand",
      dependencies: [
        "FileCoordination", "GroupDefaults", "Wormhole", "PeerConnectivity", "AppGroup",
        "PropertyLists", "SystemCalls", "Terminals",
      ],
      swiftSettings: settings),
    // Is a recorded history of reads, writes and compare-and-swaps linearizable?
    .target(name: "Histories", swiftSettings: settings),
    // Tries to break the promises with real processes, stopped and killed at random.
    .executableTarget(
      name: "Torture",
      dependencies: [
        "Histories", "Wormhole", "PeerConnectivity", "AppGroup", "PropertyLists", "SystemCalls",
      ],
      swiftSettings: settings),
    // Measures every promise of speed beside a floor taken in the same run.
    .executableTarget(
      name: "Benchmarks",
      dependencies: [
        "FileCoordination", "GroupDefaults", "Wormhole", "PeerConnectivity", "AppGroup",
        "PropertyLists", "SystemCalls",
      ],
      swiftSettings: settings),

    // The tests, one target for each layer.

    .target(
      name: "TestSupport", dependencies: ["FileCoordination", "AppGroup", "SystemCalls"],
      path: "Tests/TestSupport", swiftSettings: settings),
    // On which threads, and in which process, a test runs.
    .target(
      name: "TestScopes", dependencies: ["AppGroup", "SystemCalls"], path: "Tests/TestScopes",
      swiftSettings: settings),
    .executableTarget(
      name: "participant",
      dependencies: [
        "FileCoordination", "GroupDefaults", "Communicator", "WatchConnectivity",
        "PeerConnectivity", "AppGroup", "PropertyLists", "SystemCalls", "TestSupport",
        "CinemaTutorial", "MainActorApp",
      ],
      path: "Tests/Participant", swiftSettings: settings),
    .testTarget(name: "ArchitectureTests", dependencies: ["TestScopes"], swiftSettings: settings),
    .testTarget(
      name: "SystemCallsTests", dependencies: ["SystemCalls", "TestScopes", "TestSupport"],
      swiftSettings: settings),
    .testTarget(
      name: "PropertyListsTests", dependencies: ["PropertyLists", "TestScopes", "TestSupport"],
      swiftSettings: settings),
    .testTarget(
      name: "AppGroupTests",
      dependencies: [
        "AppGroup", "PropertyLists", "SystemCalls", "TestScopes", "TestSupport", "participant",
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
        "FileCoordination", "AppGroup", "PropertyLists", "SystemCalls", "TestScopes", "TestSupport",
        "participant",
      ],
      swiftSettings: settings),
    .testTarget(
      name: "WormholeTests",
      dependencies: [
        "Wormhole", "AppGroup", "PropertyLists", "SystemCalls", "TestScopes", "TestSupport",
        "participant",
      ],
      swiftSettings: settings),
    .testTarget(
      name: "GroupDefaultsTests",
      dependencies: [
        "GroupDefaults", "AppGroup", "PropertyLists", "SystemCalls", "TestScopes", "TestSupport",
        "participant",
      ],
      swiftSettings: settings),
    .testTarget(
      name: "PeerConnectivityTests",
      dependencies: [
        "PeerConnectivity", "AppGroup", "PropertyLists", "SystemCalls", "TestScopes", "TestSupport",
        "participant",
      ],
      swiftSettings: settings),
    .testTarget(
      name: "WatchConnectivityTests",
      dependencies: [
        "WatchConnectivity", "PeerConnectivity", "AppGroup", "PropertyLists", "SystemCalls",
        "TestScopes", "TestSupport", "participant",
      ],
      exclude: ["Tutorial", "MainActorApp"], swiftSettings: settings),
    // Code written for Apple's framework, in the language mode that most of it is written in.
    .target(
      name: "CinemaTutorial", dependencies: ["WatchConnectivity"],
      path: "Tests/WatchConnectivityTests/Tutorial",
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
        "Communicator", "WatchConnectivity", "PeerConnectivity", "AppGroup", "PropertyLists",
        "SystemCalls", "TestScopes", "TestSupport", "participant",
      ],
      swiftSettings: settings),
    .testTarget(
      name: "CommandTests",
      dependencies: [
        "WormholeCommand", "AppGroup", "PropertyLists", "SystemCalls", "Terminals", "TestScopes",
        "TestSupport",
      ],
      swiftSettings: settings),
    .testTarget(
      name: "QRCodesTests", dependencies: ["TestScopes", "QRCodes"], swiftSettings: settings),
    .testTarget(
      name: "CinemaTimeTests",
      dependencies: [
        "CinemaTime", "QRCodes", "WatchConnectivity", "PeerConnectivity", "AppGroup",
        "PropertyLists", "SystemCalls", "Terminals", "TestScopes", "TestSupport",
      ],
      swiftSettings: settings),
    .testTarget(
      name: "TortureTests",
      dependencies: [
        "Torture", "Histories", "AppGroup", "PropertyLists", "SystemCalls", "TestScopes",
        "TestSupport",
      ],
      swiftSettings: settings),
  ]
)
