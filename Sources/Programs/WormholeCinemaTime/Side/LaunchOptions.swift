import Foundation
import WatchConnectivity
import Wormhole
import WormholeTerminals

struct LaunchOptions: Sendable {
  /// Nil for the story, which starts both sides.
  var role: WCSession.Role?
  var watchName = "watch"
  /// Whether the other side started the program, so that no user types.
  var isInBackground = false
  var wantsHelp = false
  /// The options that name the same container for another process.
  private(set) var containerArguments: [String] = []

  private static let usualContainer = ["--group", "group.cinematime"]

  static let help = """
    usage: cinematime [--group ID | --container DIRECTORY] [phone | watch [--name NAME]]

    Tickets for nine films, on a phone and on a watch: two processes that share a directory.
    Without "phone" or "watch" the program plays a story with both, in a temporary directory.

      --group ID            the container of this group (default: group.cinematime)
      --container DIRECTORY the container in this directory, which must exist, or etcd://HOST/PREFIX
                            the environment variables WORMHOLE_GROUP and WORMHOLE_CONTAINER
                            have the same meaning
      --name NAME           this watch's name; 'wormhole peer pairing NAME' pairs it, and
                            'wormhole peer pairing --activate NAME' makes it the phone's active watch
      --background          without input, until idle; the watch starts the phone so

    A screen on a terminal, where "?" shows the keys. With NO_COLOR it has no colours but those of
    the QR codes, which are black and white; with TERM=dumb it has none, and nothing bold or inverse.

    Without a terminal, one command per line on standard input:
      list, tickets         the films without a ticket, by time; the tickets
      buy ID, delete ID     buys a ticket, gives it back
      show ID               a film; with its QR code if there is a ticket
      state                 the state of the other side
      echo TEXT             prints TEXT, so that a script can find the end of an answer
      quit

    """

  init(_ arguments: [String], environment: [String: String]) throws(Misuse) {
    var list = ArgumentList(arguments)
    while let argument = list.next() {
      switch argument {
      case "phone", "watch": role = WCSession.Role(rawValue: argument)
      case "--group", "--container": try take(argument, try Self.value(of: argument, &list))
      case "--name": watchName = try Self.value(of: argument, &list)
      case "--background": isInBackground = true
      case "--help", "-h", "help": wantsHelp = true
      default: throw Misuse("there is no '\(argument)' here; try --help")
      }
    }
    guard containerArguments.isEmpty else { return }
    for (option, name) in [("--group", "WORMHOLE_GROUP"), ("--container", "WORMHOLE_CONTAINER")] {
      if let value = environment[name], !value.isEmpty { try take(option, value) }
    }
    if containerArguments.isEmpty { containerArguments = Self.usualContainer }
  }

  private static func value(
    of option: String, _ list: inout ArgumentList
  ) throws(Misuse) -> String { try list.value(of: option, "a value") { $0.isEmpty ? nil : $0 } }

  private mutating func take(_ option: String, _ value: String) throws(Misuse) {
    guard [nil, option].contains(containerArguments.first) else {
      throw Misuse("a group and a directory each name a container; give only one")
    }
    // Another process may have another working directory.
    let isPath = option == "--container" && !Engines.isMeant(by: value)
    containerArguments = [option, isPath ? URL(fileURLWithPath: value).path : value]
  }

  func openContainer() throws -> SharedContainer {
    containerArguments[0] == "--group"
      ? try SharedContainer(group: containerArguments[1])
      : try SharedContainer(location: containerArguments[1])
  }

  /// The command that starts the other side.
  var otherCommand: String {
    let container = containerArguments == Self.usualContainer ? [] : containerArguments
    return (["cinematime"] + container + [role == .phone ? "watch" : "phone"])
      .map(\.quotedForShell).joined(separator: " ")
  }
}
