import AppGroup

/// A mistake in the command line.
struct UsageError: Error, CustomStringConvertible {
  let description: String
}

/// The options of the command line.
struct TortureOptions {
  var seconds = 10.0
  var processes = 6
  var seed = UInt64.random(in: 0...999_999)
  var directory: String?
  var brokenRule: String?
  var kinds = Set(Kind.allCases)
  var isVerbose = false

  static let help = """
    OVERVIEW: Tries to break the promises of a container with real processes.

    Workers hammer a few values and notifications, send and consume messages, send requests, and
    transfer files, while they are stopped, continued, killed and restarted at random. Their
    observations are checked at the end. Status 0: every check holds; 1: a check failed, and the
    container is kept.

    USAGE: torture [--seconds <n>] [--processes <p>] [--seed <s>] [--directory <dir>]
                   [--only <kinds>] [--break rule2|rule5|queue] [--verbose]

    OPTIONS:
      --seconds <n>       The duration of the work. (default: 10)
      --processes <p>     The number of concurrent workers. (default: 6)
      --seed <s>          Repeats the choices of an earlier run, as far as the kernel lets them.
      --directory <dir>   The place of the temporary container. (default: TMPDIR or /tmp)
      --only <kinds>      A comma-separated list of values, queues, requests, files, logs,
                          presence.
      --break <rule>      Leaves a rule out, to see that the checks find it: rule2 (stage through
                          the lease's own descriptor), rule5 (remove a taken-over lease before
                          acting) or queue (a consumer uses its directory by its former name).
                          Only debug builds can stop processes between two system calls, where
                          it shows.
      --verbose           Report what happens to the workers.
      -h, --help          Show help information.
    """

  /// - Returns: nil if help was requested.
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
        #if DEBUG
          brokenRule = try Self.value(&rest, of: option, "rule2, rule5 or queue") {
            LeaseFault(rawValue: $0)?.rawValue
          }
        #else
          throw UsageError(description: "\(option) needs a debug build")
        #endif
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
