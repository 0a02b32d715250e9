public import Foundation
import Synchronization
public import WatchConnectivity
public import Wormhole
import WormholeSystem

/// The world of one test: a container, and the sessions, counterparts and processes that share it.
///
/// Any number of scenes can exist in one process, and none sees another's. `end()` ends everything
/// that the scene has made, and removes its directory; a scene that is released without it does so
/// in the background. A process that is killed leaves its scenes' directories in TMPDIR.
///
/// ```swift
/// let scene = try TestScene()
/// let (phone, watch) = try (scene.session(.phone), scene.session(.watch))
/// phone.activate()
/// watch.activate()
/// try await phone.waitUntil(\.isReachable)
/// try await scene.end()
/// ```
public final class TestScene: Sendable {
  /// How long this module's waits last without a given deadline.
  public static let patience: Duration = .seconds(10)

  /// The container's directory.
  public let directory: URL
  /// The container that everything in the scene shares.
  public let container: SharedContainer
  let content = Mutex(Content())

  struct Content {
    var sessions: [WCSession] = []
    var counterparts: [Counterpart] = []
    var processes: [SideProcess] = []
  }

  /// Makes a container in a new temporary directory.
  ///
  /// - Parameter parent: the directory in which to make it; by default the one for temporary files.
  /// - Throws: `WormholeError.Code.directory`, or an error of the container.
  public init(in parent: URL? = nil) throws {
    let parent = parent ?? FileManager.default.temporaryDirectory
    directory = parent.appending(
      path: "connectivity-test-\(UUID().uuidString)", directoryHint: .isDirectory)
    do {
      try FileManager.default.createDirectory(
        at: directory, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    } catch {
      throw WormholeError(.directory, "make \(directory.path)", reason: "\(error)")
    }
    container = try SharedContainer(url: directory)
  }

  deinit {
    let (content, directory) = (content.withLock { $0 }, directory)
    Blocking.queue().async {
      Diagnostics.reporting {
        try content.end(until: .now + Self.patience, removing: directory)
      }
    }
  }

  /// Makes a session of the scene: set its delegate, and call `activate()`. It is independent of
  /// `WCSession.default`; see `WCSession.asDefault` for code that uses that property.
  ///
  /// - Parameters:
  ///   - role: the side of the session.
  ///   - watchName: on the watch: its name.
  ///   - replyTimeout: how long a message waits for its reply.
  /// - Throws: `WCError.sessionNotSupported` for a name that is invalid for a watch.
  public func session(
    _ role: WCSession.Role, watchName: String = "watch", replyTimeout: Duration = patience
  ) throws -> WCSession {
    let session = try WCSession.making(
      role, in: container, watchName: watchName, replyTimeout: replyTimeout)
    content.withLock { $0.sessions.append(session) }
    return session
  }

  /// Ends the scene's sessions, counterparts and processes, and removes its directory. Further
  /// calls have no effect.
  ///
  /// - Throws: `WormholeError.Code.timedOut` if a delegate's method does not return; `.directory`.
  ///   Everything else has still ended.
  @available(*, noasync, message: "it blocks; await the other form, in an async function")
  public func end(until deadline: ContinuousClock.Instant? = nil) throws {
    let content = content.withLock { content in
      defer { content = Content() }
      return content
    }
    try content.end(until: deadline ?? .now + Self.patience, removing: directory)
  }

  /// Ends everything; see the form without `async`.
  public func end(until deadline: ContinuousClock.Instant? = nil) async throws {
    try await Blocking.run { try self.end(until: deadline) }
  }
}

extension TestScene.Content {
  /// Blocks. The processes end first, because they communicate with the others.
  fileprivate func end(
    until deadline: ContinuousClock.Instant, removing directory: URL
  ) throws {
    for process in processes { process.kill() }
    for counterpart in counterparts { counterpart.leave() }
    var failure: (any Error)?
    for session in sessions {
      do { try session.end(until: deadline) } catch { failure = error }
    }
    if let failure { throw failure }
    do {
      try FileManager.default.removeItem(at: directory)
    } catch CocoaError.fileNoSuchFile {
      // It was ended before.
      return
    } catch {
      throw WormholeError(.directory, "remove \(directory.path)", reason: "\(error)")
    }
  }
}

extension TestScene {
  /// Starts a program as one side, on the scene's container: it finds its place in its environment,
  /// without calling `WCSession.configure`.
  ///
  /// - Parameters:
  ///   - program: its path; see `SideProcess.built(_:)`.
  ///   - arguments: its arguments, without the program's name.
  ///   - role: its side.
  ///   - watchName: on the watch: its name.
  ///   - environment: further variables.
  /// - Returns: the process, which ends with the scene.
  /// - Throws: `WormholeError.Code.process`.
  public func start(
    _ program: String, _ arguments: [String] = [], as role: WCSession.Role,
    watchName: String = "watch", environment: [String: String] = [:]
  ) throws -> SideProcess {
    let place = [
      "WATCHCONNECTIVITY_ROLE": role.rawValue, "WATCHCONNECTIVITY_WATCH": watchName,
      "WORMHOLE_CONTAINER": directory.path,
    ]
    let process = try SideProcess(
      program, arguments, environment: place.merging(environment) { $1 })
    content.withLock { $0.processes.append(process) }
    return process
  }
}
