import AppGroup

/// The program was called in a way that makes no sense.
struct UsageError: Error, CustomStringConvertible {
  let description: String
}

/// What the command line asks for.
struct TortureOptions {
  var seconds = 10.0
  var processes = 6
  var seed = UInt64.random(in: 0...999_999)
  var directory: String?
  var fault: LeaseFault?
  var kinds = Set(Kind.allCases)
  var isVerbose = false

  static let help = """
    OVERVIEW: Tries to break the promises of a container with real processes.

    Workers hammer a few values and notifications, send and consume messages, ask each other, and
    transfer files, while they are stopped, continued, killed and started again at random. What each
    of them saw is checked at the end. Status 0: every check holds; 1: one does not, and the
    container is kept.

    USAGE: torture [--seconds <n>] [--processes <p>] [--seed <s>] [--directory <dir>]
                   [--only <kinds>] [--break rule2|rule5|queue] [--verbose]

    OPTIONS:
      --seconds <n>       How long the workers work. (default: 10)
      --processes <p>     How many workers there are at a time. (default: 6)
      --seed <s>          Repeats the choices of an earlier run, as far as the kernel lets them.
      --directory <dir>   Where the temporary container is made. (default: TMPDIR or /tmp)
      --only <kinds>      Which of values, queues, requests, files, presence; a list with commas.
      --break <rule>      Leave a rule out, to see that this is found: rule2 (stage through the
                          lease's own descriptor), rule5 (remove what was taken away before acting)
                          or queue (a consumer uses its directory by the name that it had). In
                          debug builds only are processes stopped between two system calls, where
                          it shows.
      --verbose           Tell what happens to the workers.
      -h, --help          Show help information.
    """

  /// - Returns: nil when help was asked for.
  init?(_ arguments: [String]) throws(UsageError) {
    var rest = arguments[...]
    while let option = rest.popFirst() {
      switch option {
      case "-h", "--help": return nil
      case "--verbose": isVerbose = true
      case "--seconds":
        seconds = try Self.value(&rest, of: option, "a number of seconds") { text in
          Double(text).flatMap { $0 > 0 && $0 <= 1_000_000 ? $0 : nil }
        }
      case "--processes":
        processes = try Self.value(&rest, of: option, "a number from 1 to 200") { text in
          Int(text).flatMap { (1...200).contains($0) ? $0 : nil }
        }
      case "--seed": seed = try Self.value(&rest, of: option, "a number") { UInt64($0) }
      case "--directory": directory = try Self.value(&rest, of: option, "a directory") { $0 }
      case "--break":
        fault = try Self.value(&rest, of: option, "rule2, rule5 or queue") {
          LeaseFault(rule: $0)
        }
      case "--only":
        kinds = try Self.value(
          &rest, of: option, "a list of " + Kind.text(Set(Kind.allCases)), Kind.list)
      default: throw UsageError(description: "unknown option “\(option)”; see torture --help")
      }
    }
  }

  private static func value<Parsed>(
    _ rest: inout ArraySlice<String>, of option: String, _ what: String,
    _ parse: (String) -> Parsed?
  ) throws(UsageError) -> Parsed {
    guard let text = rest.popFirst(), let parsed = parse(text) else {
      throw UsageError(description: "\(option) needs \(what)")
    }
    return parsed
  }
}

extension LeaseFault {
  init?(rule: String) {
    switch rule {
    case "rule2": self = .stagingByPath
    case "rule5": self = .actingBeforeRemoval
    case "queue": self = .consumingThroughOldDescriptor
    default: return nil
    }
  }

  var rule: String {
    switch self {
    case .stagingByPath: "rule2"
    case .actingBeforeRemoval: "rule5"
    case .consumingThroughOldDescriptor: "queue"
    }
  }
}
