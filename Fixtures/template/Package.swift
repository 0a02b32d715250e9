// swift-tools-version: 6.2
import PackageDescription

// On Apple's platforms WatchConnectivity is the system's, and the condition keeps this one out of the build.
let session: Target.Dependency = .product(
  name: "WatchConnectivity", package: "wormhole", condition: .when(platforms: [.linux]))

let package = Package(
  name: "Steps",
  platforms: [.iOS(.v17), .watchOS(.v10)],
  dependencies: [
    // OWNER is the account that publishes Wormhole.
    .package(url: "https://github.com/OWNER/wormhole", from: "1.0.0-beta")
  ],
  targets: [
    .executableTarget(name: "StepsPhone", dependencies: [session]),
    .executableTarget(name: "StepsWatch", dependencies: [session]),
    .testTarget(
      name: "StepsTests",
      dependencies: [
        "StepsPhone", "StepsWatch",
        .product(
          name: "ConnectivityTesting", package: "wormhole", condition: .when(platforms: [.linux])),
      ]),
  ]
)
