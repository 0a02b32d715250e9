// swift-tools-version: 6.2
import PackageDescription

/// Not NonisolatedNonsendingByDefault, which would be the next one: with it, a client's call with `await` of a function
/// that also has a blocking form, and takes a closure, means the blocking form, and does not compile.
let settings: [SwiftSetting] = [
  .swiftLanguageMode(.v6),
  .treatAllWarnings(as: .error),
  .enableUpcomingFeature("MemberImportVisibility"),
  .enableUpcomingFeature("InternalImportsByDefault"),
  .enableUpcomingFeature("ExistentialAny"),
]

/// For protocols that clients in Swift 5 conform to: a compiler of a client warns of each `@Sendable`
/// that a method of it lacks, unless the protocol's module is in Swift 5 too. Its own code has all
/// checks of Swift 6.
let settingsForConformers: [SwiftSetting] =
  settings.dropFirst() + [.swiftLanguageMode(.v5), .enableUpcomingFeature("StrictConcurrency")]

/// The rooms, bottom-up. A room imports only what lies below it; Tests/ArchitectureTests reads every
/// import line, and the names that each folder uses. A client's package graph contains all of these
/// names, so each is an original's or begins with Wormhole.
let rooms: [Target] = [
  // Functions that Glibc's module lacks: renameat2, openat2, …; libcurl's, found at run time (headers only).
  .systemLibrary(name: "WormholeShims", path: "Sources/Core/WormholeShims"),
  // Calls the kernel, and turns -1 into an error; removal of file trees, monitoring and waiting.
  room("Core/WormholeSystem", ["WormholeShims"]),
  // Property-list values, a bounded codec, and the guard that any foreign bytes pass first.
  room("Core/WormholePropertyLists", []),
  // What a container is: values, channels, notifications, presences, queues, logs. Its folders from below:
  // Errors, Names, Root, Leases, Container; on them Values, then each other primitive.
  room("Core/Wormhole", ["WormholePropertyLists", "WormholeSystem"]),
  // What the rooms above share and a client of the core leaves out: calls between processes, copies of
  // file trees, child processes.
  room(
    "Core/WormholeToolkit",
    ["Wormhole", "WormholePropertyLists", "WormholeSystem", "WormholeShims"]),
  // The content of a container, and its faults; a whole container copied from one place to another.
  room(
    "Core/WormholeInspection",
    ["WormholeToolkit", "Wormhole", "WormholePropertyLists", "WormholeSystem"]),
  // The engine for containers on etcd: its client, and what stands there behind each primitive.
  room(
    "Core/WormholeEtcd",
    [
      "WormholeInspection", "WormholeToolkit", "Wormhole", "WormholePropertyLists",
      "WormholeSystem", "WormholeShims",
    ]),

  // notify(3) and the Darwin center of Core Foundation (source-compatible), one center for a user.
  room("Facades/notify", ["Wormhole", "WormholeSystem", "WormholeShims"]),
  // Coordinated access to any file or directory, inside a container or not; presenters.
  room(
    "Facades/WormholeFiles",
    ["WormholeToolkit", "Wormhole", "WormholePropertyLists", "WormholeSystem"]),
  // NSFileCoordinator and its kin (source-compatible), for code that imports Foundation.
  room("Facades/NSFileCoordination", ["WormholeFiles", "Wormhole"], settingsForConformers),
  // UserDefaults(suiteName:) between processes: GroupDefaults (source-compatible, and throwing, async).
  room("Facades/GroupDefaults", ["WormholeInspection", "Wormhole", "WormholePropertyLists"]),
  // UserDefaults (source-compatible) over GroupDefaults, and the key-value observing that Foundation lacks.
  room("Facades/WormholeUserDefaults", ["GroupDefaults", "Wormhole", "WormholePropertyLists"]),
  // The same for clients: each name comes before Foundation's, because it is exported by itself.
  room("Facades/SharedUserDefaults", ["WormholeUserDefaults", "GroupDefaults"]),
  // The part of Combine that models of apps use (source-compatible).
  room("Facades/Combine", ["WormholeUserDefaults"]),
  // Named peers: requests, guaranteed messages, contexts, files; how a peer is started, and paired.
  room(
    "Facades/WormholePeers",
    [
      "WormholeInspection", "WormholeToolkit", "Wormhole", "WormholePropertyLists",
      "WormholeSystem",
    ]),
  // WCSession and what belongs to it (source-compatible): a phone and a watch over PeerSession.
  room(
    "Facades/WatchConnectivity",
    [
      "WormholeUserDefaults", "WormholePeers", "WormholeToolkit", "Wormhole",
      "WormholePropertyLists",
    ]),
  // Communicator 4.1 (source-compatible), over WCSession.
  room("Facades/Communicator", ["WatchConnectivity", "WormholePropertyLists"]),
  // MMWormhole 2.0 (source-compatible), over values, coordinated archives and WCSession.
  room(
    "Facades/MMWormhole",
    [
      "WatchConnectivity", "WormholeFiles", "WormholeToolkit", "Wormhole", "WormholePropertyLists",
    ]),
  // For tests of code that uses WatchConnectivity: sessions, counterparts and processes of a test's own.
  room(
    "Facades/ConnectivityTesting",
    [
      "WatchConnectivity", "WormholePeers", "WormholeToolkit", "Wormhole", "WormholePropertyLists",
      "WormholeSystem",
    ]),

  // What programs say at a terminal: wrapped text, colours, arguments, and cells of a screen.
  room("Programs/WormholeTerminals", ["WormholeSystem"]),
  // What tests and measurements share: histories, an etcd that can be disturbed, rows.
  room(
    "Workshop/WormholeWorkshop",
    [
      "WormholeTerminals", "Wormhole", "WormholeEtcd", "WormholeToolkit", "WormholePropertyLists",
      "WormholeShims",
      "WormholeSystem",
    ]),
  // `wormhole`: the same for anyone with a shell.
  program(
    "Programs/WormholeCommand",
    [
      "WormholeFiles", "GroupDefaults", "WormholePeers", "WormholeEtcd", "WormholeInspection",
      "WormholeTerminals", "WormholeToolkit", "Wormhole", "WormholePropertyLists",
      "WormholeSystem",
    ], embeds: "ManualPages/OnDiskFormat.md"),
  // `cinematime`: a phone and a watch keep tickets in step.
  program(
    "Programs/WormholeCinemaTime",
    [
      "ConnectivityTesting", "WatchConnectivity", "WormholePeers", "WormholeTerminals",
      "WormholeEtcd",
      "WormholeInspection", "WormholeToolkit", "Wormhole", "WormholePropertyLists",
      "WormholeSystem",
    ], embeds: "../../../Fixtures/movies.json"),
  // Tries to break the promises with real processes, stopped and killed at random.
  program(
    "Workshop/WormholeTorture",
    [
      "WormholePeers", "WormholeInspection", "WormholeWorkshop", "WormholeTerminals",
      "WormholeToolkit", "Wormhole",
      "WormholeEtcd", "WormholePropertyLists", "WormholeSystem",
    ]),
  // Measures every promise of speed.
  program(
    "Workshop/WormholeBenchmarks",
    [
      "WormholeFiles", "GroupDefaults", "WormholePeers", "WormholeInspection", "WormholeWorkshop",
      "WormholeTerminals",
      "WormholeEtcd", "WormholeToolkit", "Wormhole", "WormholePropertyLists", "WormholeSystem",
    ]),
]

/// What all tests use, the process that they drive, and code written for the originals, in the
/// language mode that most of it is written in.
let testTools: [Target] = [
  .target(
    name: "WormholeTestSupport",
    dependencies: [
      "WormholeFiles", "WormholeInspection", "WormholeToolkit", "Wormhole", "WormholeWorkshop",
      "WormholeTerminals",
      "WormholeEtcd", "WormholeSystem",
    ],
    path: "Tests/Support/WormholeTestSupport", swiftSettings: settings),
  .executableTarget(
    name: "WormholeParticipant",
    dependencies: [
      "WormholeFiles", "GroupDefaults", "Communicator", "WatchConnectivity", "WormholePeers",
      "WormholeInspection", "WormholeEtcd", "WormholeToolkit", "Wormhole",
      "WormholePropertyLists", "WormholeSystem", "WormholeTestSupport", "WormholeCinemaTutorial",
      "WormholeMainActorApp",
      "WormholeFoundationClients", "WormholeWatchClients", "WormholeCommunicatorClients",
      "WormholeDefaultsClients", "WormholeMessageClients", "WormholeNotifyClients",
    ],
    path: "Tests/Support/WormholeParticipant", swiftSettings: settings),
  // Runs processes step by step, in every order; see Tests/Schedules/explore.
  .target(name: "WormholeSeam", path: "Tests/Schedules/Seam"),
  .executableTarget(
    name: "WormholeSchedules",
    dependencies: [
      "WormholeSeam", "WormholeFiles", "WormholeInspection", "WormholeWorkshop",
      "WormholeTerminals", "WormholeToolkit",
      "Wormhole", "WormholePropertyLists", "WormholeSystem",
    ],
    path: "Tests/Schedules/Explorer", swiftSettings: settings),
  clients(
    "WormholeFoundationClients", of: "NSFileCoordination", "Facades/NSFileCoordinationTests/Clients"
  ),
  clients("WormholeNotifyClients", of: "notify", "Facades/notifyTests/Clients"),
  clients("WormholeMessageClients", of: "MMWormhole", "Facades/MMWormholeTests/Clients"),
  clients(
    "WormholeDefaultsClients", of: "SharedUserDefaults", "Facades/GroupDefaultsTests/Clients"),
  clients(
    "WormholeCombineClients", of: "Combine", and: ["SharedUserDefaults"],
    "Facades/CombineTests/Clients"),
  clients(
    "WormholeCinemaTutorial", of: "WatchConnectivity", and: ["Combine"],
    "Facades/WatchConnectivityTests/Tutorial"),
  clients(
    "WormholeWatchClients", of: "WatchConnectivity", "Facades/WatchConnectivityTests/Clients"),
  clients("WormholeCommunicatorClients", of: "Communicator", "Facades/CommunicatorTests/Clients"),
  // The same, in a target whose default isolation is the main actor, as new apps have it.
  clients(
    "WormholeMainActorApp", of: "WatchConnectivity", "Facades/WatchConnectivityTests/MainActorApp",
    [.swiftLanguageMode(.v6), .defaultIsolation(MainActor.self)]),
  // An app's code, as the page "Test both sides" shows it.
  clients(
    "WormholeStepCounter", of: "WatchConnectivity", "BothSides/StepCounter",
    [.swiftLanguageMode(.v6)]),
]

/// Each room's tests, in the group of the room, with a folder for each folder of its sources.
let tests: [Target] = [
  test("ArchitectureTests", ["WormholeToolkit"]),
  test("Core/WormholeSystemTests", core + ["WormholeShims"]),
  test("Core/WormholePropertyListsTests", ["WormholePropertyLists"]),
  test("Core/WormholeTests", core + ["WormholeEtcd", "WormholeParticipant"]),
  test(
    "Core/WormholeToolkitTests",
    core + ["WormholeFiles", "WormholeEtcd", "WormholeParticipant", "WormholeShims"]),
  test("Core/WormholeInspectionTests", core + ["WormholeEtcd", "WormholeParticipant"]),
  test("Core/WormholeEtcdTests", core + ["WormholeEtcd", "WormholeParticipant", "WormholeShims"]),
  // What the core does on a disk that is full, hangs or is lost, and on kinds of file systems.
  test(
    "FileSystemTests",
    core + ["WormholeFiles", "GroupDefaults", "WormholeCommand", "WormholeParticipant"]),
  test("Facades/notifyTests", ["notify", "WormholeParticipant"], excludes: ["Clients"]),
  test("Facades/WormholeFilesTests", core + ["WormholeFiles", "WormholeParticipant"]),
  test(
    "Facades/NSFileCoordinationTests",
    core + [
      "NSFileCoordination", "WormholeFiles", "WormholeFoundationClients", "WormholeParticipant",
    ],
    excludes: ["Clients"]),
  test(
    "Facades/MMWormholeTests",
    core + [
      "MMWormhole", "WatchConnectivity", "WormholePeers", "WormholeMessageClients",
      "WormholeCommand", "WormholeParticipant",
    ],
    excludes: ["Clients"]),
  test(
    "Facades/GroupDefaultsTests",
    core + [
      "SharedUserDefaults", "WormholeUserDefaults", "GroupDefaults", "WormholeDefaultsClients",
      "WormholeParticipant",
    ],
    excludes: ["Clients"]),
  test(
    "Facades/CombineTests",
    ["Combine", "SharedUserDefaults", "WormholeCombineClients"],
    excludes: ["Clients"]),
  test(
    "Facades/WormholePeersTests", core + ["WormholePeers", "WormholeEtcd", "WormholeParticipant"]),
  test(
    "Facades/WatchConnectivityTests",
    core + [
      "WormholeUserDefaults", "WatchConnectivity", "WormholePeers", "WormholeWatchClients",
      "WormholeParticipant",
    ],
    excludes: ["Tutorial", "MainActorApp", "Clients"]),
  test(
    "Facades/CommunicatorTests",
    core + ["Communicator", "WatchConnectivity", "WormholePeers", "WormholeParticipant"],
    excludes: ["Clients"]),
  test(
    "Facades/ConnectivityTestingTests",
    core + [
      "ConnectivityTesting", "WormholeStepCounter", "Communicator", "WatchConnectivity",
      "WormholePeers", "WormholeParticipant",
    ]),
  // An app's tests, as the page "Test both sides" shows them.
  .testTarget(
    name: "BothSides",
    dependencies: ["WormholeStepCounter", "ConnectivityTesting", "WatchConnectivity"],
    path: "Tests/BothSides/Tests",
    swiftSettings: [.swiftLanguageMode(.v6), .treatAllWarnings(as: .error)]),
  test(
    "Programs/WormholeCommandTests",
    core + ["WormholeCommand", "WormholeEtcd", "WormholeTerminals", "WormholeWorkshop"]),
  test(
    "Programs/WormholeCinemaTimeTests",
    core + [
      "WormholeCinemaTime", "ConnectivityTesting", "WatchConnectivity", "WormholePeers",
      "WormholeTerminals", "WormholeWorkshop",
    ]),
  test(
    "Workshop/WormholeBenchmarksTests",
    [
      "WormholeBenchmarks", "WormholeTerminals", "WormholeWorkshop", "WormholeToolkit",
      "WormholeSystem",
    ]
  ),
  test(
    "Workshop/WormholeTortureTests",
    core + [
      "WormholeTorture", "WormholeTerminals", "WormholeWorkshop", "WormholeEtcd", "WormholeCommand",
      "WormholeParticipant",
    ]),
]

var core: [Target.Dependency] {
  [
    "Wormhole", "WormholeInspection", "WormholeToolkit", "WormholePropertyLists", "WormholeSystem",
  ]
}

func room(
  _ path: String, _ dependencies: [Target.Dependency], _ settings: [SwiftSetting] = settings
) -> Target {
  .target(
    name: name(path), dependencies: dependencies, path: "Sources/" + path, swiftSettings: settings)
}

func program(
  _ path: String, _ dependencies: [Target.Dependency], embeds resource: String? = nil
) -> Target {
  .executableTarget(
    name: name(path), dependencies: dependencies, path: "Sources/" + path,
    resources: resource.map { [.embedInCode($0)] }, swiftSettings: settings)
}

func clients(
  _ name: String, of room: Target.Dependency, and others: [Target.Dependency] = [],
  _ path: String, _ settings: [SwiftSetting] = [.swiftLanguageMode(.v5)]
) -> Target {
  .target(
    name: name, dependencies: [room] + others, path: "Tests/" + path,
    swiftSettings: settings + [.treatAllWarnings(as: .error)])
}

func test(
  _ path: String, _ dependencies: [Target.Dependency], excludes: [String] = []
) -> Target {
  .testTarget(
    name: name(path), dependencies: dependencies + ["WormholeTestSupport"], path: "Tests/" + path,
    exclude: excludes, swiftSettings: settings)
}

func name(_ path: String) -> String { path.split(separator: "/").last.map(String.init) ?? path }

let libraries = rooms.map(\.name).filter {
  ![
    "WormholeShims", "WormholeSystem", "WormholeToolkit", "WormholeUserDefaults",
    "WormholeTerminals", "WormholeWorkshop", "WormholeCommand", "WormholeCinemaTime",
    "WormholeTorture", "WormholeBenchmarks",
  ].contains($0)
}

#if os(Linux)
  let package = Package(
    name: "wormhole",
    products: libraries.map { .library(name: $0, targets: [$0]) } + [
      .executable(name: "wormhole", targets: ["WormholeCommand"]),
      .executable(name: "cinematime", targets: ["WormholeCinemaTime"]),
    ],
    targets: rooms + testTools + tests
  )
#else
  // Empty, so that a package for several systems can depend on this one.
  let package = Package(
    name: "wormhole",
    products: libraries.map { .library(name: $0, targets: ["WormholeElsewhere"]) },
    targets: [.target(name: "WormholeElsewhere", path: "Sources/Core/WormholeElsewhere")]
  )
#endif
