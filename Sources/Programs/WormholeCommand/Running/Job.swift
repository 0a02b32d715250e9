import Wormhole
import WormholePropertyLists
import WormholeSystem
import WormholeTerminals

/// A command as an entry of a queue: `queue put -- COMMAND` stores it, and `queue take --run` runs it.
///
/// Other programs may store such entries, too. All paths are absolute, and `environment` may be missing.
///
/// ```
/// {"command":["make","all"],"directory":"/home/ada/film","environment":{"CC":"clang"}}
/// ```
struct Job: Encodable {
  let words: [String]
  let directory: String
  /// Variables that it has besides those of the process that runs it.
  let variables: [String: String]

  /// - Returns: nil if the value is not a command.
  init?(_ value: PropertyListValue) {
    let variables = value["environment"]?.dictionaryValue ?? [:]
    let words = value["command"]?.arrayValue?.map(\.stringValue) ?? []
    guard let directory = value["directory"]?.stringValue, directory.hasPrefix("/"),
      !words.isEmpty, words.allSatisfy({ $0.map(Self.isText) ?? false }), words.first != "",
      variables.allSatisfy({
        Self.isName($0) && $1.stringValue.map(Self.isText) ?? false
      }), Self.isText(directory)
    else { return nil }
    self.words = words.compactMap(\.self)
    self.directory = directory
    self.variables = variables.compactMapValues(\.stringValue)
  }

  /// The command with the current directory of this process, and some of its variables.
  init(
    words: [String], variables names: [String], _ environment: CommandEnvironment
  ) throws(CommandError) {
    self.words = words
    directory = try reporting(cannot: "find the current directory", linkTarget("/proc/self/cwd"))
    var variables: [String: String] = [:]
    for name in names {
      guard Self.isName(name), let value = environment.variable(name), !value.isRepaired else {
        throw CommandError(
          cannot: "keep the variable \(name.quoted)",
          because: "it is not set, or is not UTF-8; --env takes a name only", status: .usage)
      }
      variables[name] = value
    }
    self.variables = variables
  }

  // NUL would end it.
  private static func isText(_ text: String) -> Bool { !text.utf8.contains(0) }

  private static func isName(_ name: String) -> Bool {
    !name.isEmpty && !name.utf8.contains(UInt8(ascii: "=")) && isText(name)
  }

  /// The entry.
  var value: PropertyListValue {
    [
      "command": .array(words.map { .string($0) }), "directory": .string(directory),
      "environment": .dictionary(variables.mapValues { .string($0) }),
    ]
  }

  func encode(to encoder: any Encoder) throws { try value.encode(to: encoder) }

  /// The command as a shell line.
  var line: String { words.map(\.quotedForShell).joined(separator: " ") }

  /// - Parameter container: the variables with which it finds its runner's container.
  /// - Throws: if its directory no longer exists here.
  func command(container: [String: String]) throws(CommandError) -> ExternalCommand {
    // With the final dot: without it, even a directory that may not be entered can be opened.
    let opened = try reporting(
      cannot: "enter the directory \(directory)",
      SharedDescriptor(FileDescriptor.open(directory + "/.", [.pathOnly, .directory])))
    let own = variables.merging(["PWD": directory]) { $1 }
    return ExternalCommand(
      words: words, container: container.merging(own) { $1 }, directory: opened)
  }
}
