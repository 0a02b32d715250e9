import AppGroup
import Foundation
import WatchConnectivity

/// What the program was started as.
struct LaunchOptions: Sendable {
  /// Nil for the story, which starts both.
  var role: WCSession.Role?
  var group: String?
  var directory: String?
  var watchName = "watch"
  /// Started by the other side: nobody types.
  var isInBackground = false
  var wantsHelp = false

  struct Problem: Error {
    let reason: String
  }

  static let help = """
    usage: cinematime [--group ID | --container DIRECTORY] [phone | watch [--name NAME]]

    Tickets for nine films, on a phone and on a watch: two processes that share a directory.
    Without phone or watch a story is played with both, in a directory of its own.

      --group ID            the container of this group; group.cinematime unless told otherwise
      --container DIRECTORY the container in this directory, which must exist
                            WORMHOLE_GROUP and WORMHOLE_CONTAINER in the environment say the same
      --name NAME           which of several watches; 'wormhole peer pair NAME' pairs it, and
                            'wormhole peer switch NAME' makes it the one that the phone talks to
      --background          until nothing is left to do, without input: as the watch starts the phone

    At a terminal a screen; else a command a line on standard input:
      list                  the films without a ticket, by time
      tickets               the tickets
      buy ID, delete ID     buys a ticket, gives it back
      show ID               a film; with its QR code if there is a ticket
      delivery KIND         how the other side is told: failable, guaranteed or highPriority
      state                 what the session says of the other side
      echo TEXT             TEXT, so that a script knows where an answer has ended
      quit

    """

  init(_ arguments: [String], environment: [String: String]) throws(Problem) {
    var rest = arguments[...]
    while let argument = rest.popFirst() {
      switch argument {
      case "phone", "watch": role = WCSession.Role(rawValue: argument)
      case "--group": group = try Self.value(of: argument, &rest)
      case "--container": directory = try Self.value(of: argument, &rest)
      case "--name": watchName = try Self.value(of: argument, &rest)
      case "--background": isInBackground = true
      case "--help", "-h", "help": wantsHelp = true
      default: throw Problem(reason: "there is no '\(argument)' here; try --help")
      }
    }
    if group == nil, directory == nil {
      group = environment["WORMHOLE_GROUP"].flatMap { $0.isEmpty ? nil : $0 }
      directory = environment["WORMHOLE_CONTAINER"].flatMap { $0.isEmpty ? nil : $0 }
    }
    if group != nil, directory != nil {
      throw Problem(reason: "a group and a directory each name a container; say one")
    }
  }

  private static func value(
    of option: String, _ rest: inout ArraySlice<String>
  ) throws(Problem) -> String {
    guard let value = rest.popFirst(), !value.isEmpty else {
      throw Problem(reason: "\(option) needs a value")
    }
    return value
  }

  func openContainer() throws -> SharedContainer {
    if let directory { return try SharedContainer(url: URL(fileURLWithPath: directory)) }
    return try SharedContainer(group: group ?? "group.cinematime")
  }

  /// The options that name the same container, for another process.
  var containerArguments: [String] {
    if let directory { return ["--container", URL(fileURLWithPath: directory).path] }
    return ["--group", group ?? "group.cinematime"]
  }
}
