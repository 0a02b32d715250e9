import Wormhole
import WormholeSystem

extension EtcdContainer {
  /// Returns the directory of this machine that belongs to a container on etcd: for files, which
  /// other machines do not see, and all that is tied to its processes. It is an ordinary container.
  ///
  /// `$XDG_STATE_HOME/wormhole/<digest of the cluster and the prefix>`, by default in
  /// `~/.local/state` (XDG Base Directory Specification 0.8).
  package func localDirectory() throws -> String {
    let identity = "\(client.clusterID ?? "")/\(location.prefix)"
    let digest = SHA256.hexDigest(of: Array(identity.utf8)).prefix(32)
    return try Self.stateDirectory(location) + "/wormhole/" + digest
  }

  /// Returns the directory of the state of programs.
  static func stateDirectory(_ location: EtcdLocation) throws(AppGroupError) -> String {
    // The specification says that a relative path must be ignored.
    if let state = Program.environment("XDG_STATE_HOME"), state.hasPrefix("/") { return state }
    if let home = Program.homeDirectory, home.hasPrefix("/") { return home + "/.local/state" }
    throw AppGroupError(
      .containerMissing, "find this machine's directory of the container",
      path: location.description, reason: "neither XDG_STATE_HOME nor HOME is set",
      remedy: "set HOME")
  }
}
