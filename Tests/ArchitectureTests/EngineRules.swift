import WormholeToolkit

/// The core's knowledge about a container: that it is a directory, locked with flock, or a prefix of
/// keys on etcd.
///
/// The façades and the programs use only values, queues, presences and notifications, and know neither.
/// Each exception is listed here with a reason.
enum EngineRules {
  /// Types of the core that represent directories, locks and file names.
  private static let directoryTypes: Set<String> = [
    "ContainerRoot", "HeldDirectory", "Lease", "LeaseRequest", "LeaseSite",
    "NameKind", "NamedDirectory", "QueueDirectory", "PresenceDirectory", "MailboxDirectory",
  ]

  /// Calls whose names façades give to closures of their own.
  private static let common: Set<String> = ["end", "link"]

  /// Folders and files that may use all of these, and call the kernel.
  static let exceptions: [(prefix: String, reason: String)] = [
    ("Sources/Facades/WormholeFiles/", "coordinates files, in a container or not"),
    ("Sources/Facades/WormholePeers/Files/", "the content of a transfer is a file"),
    ("Sources/Facades/WormholePeers/Launching/", "a peer is launched as a process of this machine"),
    (
      "Sources/Facades/ConnectivityTesting/SideProcess.swift",
      "a test drives the other side as a process"
    ),
    ("Sources/Programs/WormholeCommand/Diagnosis/", "`status` and `doctor` show the directory"),
  ]

  /// Files of façades and programs that may ask for the container's path.
  static let pathUsers: [(prefix: String, reason: String)] = [
    (
      "Sources/Facades/WatchConnectivity/Session/Link/SessionDirectories.swift",
      "received files and Apple's `watchDirectoryURL` lie beside the container"
    ),
    (
      "Sources/Facades/MMWormhole/MMWormholeFileTransiting.swift",
      "the original's `messagePassingDirectoryPath`"
    ),
    (
      "Sources/Programs/WormholeCinemaTime/Model/TicketCodes.swift",
      "the demo keeps its codes there"
    ),
  ]

  /// - Parameter calls: The types and functions that call the kernel.
  static func findings(
    in text: SourceText, path: String, calls: Set<String>
  ) -> [Finding] {
    guard ["Sources/Facades/", "Sources/Programs/"].contains(where: { path.hasPrefix($0) }),
      !exceptions.contains(where: { path.hasPrefix($0.prefix) })
    else { return [] }
    let tokens = text.tokens
    var findings: [Finding] = []
    for (index, token) in tokens.enumerated() {
      if directoryTypes.contains(token.text) {
        findings.append(Finding(path, token.line, "\(token.text) is known to the core only"))
      }
      if ["url", "root", "access"].contains(token.text),
        tokens[..<index].suffix(2).map(\.text) == ["container", "."],
        !pathUsers.contains(where: { path.hasPrefix($0.prefix) })
      {
        findings.append(
          Finding(path, token.line, "the container's \(token.text) is known to the core only"))
      }
    }
    if path.hasPrefix("Sources/Facades/"),
      imports(of: text).contains(where: {
        ["WormholeSystem", "WormholeToolkit"].contains($0.module)
      })
    {
      for (index, token) in tokens.enumerated()
      where calls.contains(token.text) && !common.contains(token.text) {
        guard index == 0 || ![".", "func", "case"].contains(tokens[index - 1].text),
          token.text.first?.isUppercase == true || tokens[(index + 1)...].first?.text == "("
        else { continue }
        findings.append(
          Finding(path, token.line, "a façade calls the kernel through the core: \(token.text)"))
      }
    }
    return findings
  }
}
