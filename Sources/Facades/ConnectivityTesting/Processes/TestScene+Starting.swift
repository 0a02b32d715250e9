import Synchronization
public import WatchConnectivity

extension TestScene {
  /// Starts a program as one side, on the scene's container: it finds its place in its environment,
  /// without a call of `WCSession.configure`.
  ///
  /// - Parameters:
  ///   - program: its path; see `SideProcess.built(_:)`.
  ///   - arguments: its arguments, without the program's name.
  ///   - role: its side.
  ///   - watchName: on the watch: its name.
  ///   - environment: further variables.
  /// - Returns: the process, which ends with the scene.
  /// - Throws: `TestingError`: `process`.
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
