import Wormhole
import WormholeEtcd
import WormholeTerminals

/// The options of the command line.
struct TortureOptions: Codable {
  var seconds = 10.0
  var processes = 6
  var seed = UInt64.random(in: 0...999_999)
  var directory: String?
  var brokenRule: String?
  /// The program of every second worker: this one, built from another commit.
  var other: String?
  var kinds = Kind.ofDirectories
  /// The number of members of the container's etcd; nil for a directory.
  var members: Int?
  var isVerbose = false

  static let help = """
    OVERVIEW: Tries to break the promises of a container with real processes.

    Workers hammer a few values and notifications, send and consume messages, send requests, and
    transfer files, while they are stopped, continued, killed and restarted at random. Their
    observations are checked at the end. Status 0: every check holds; 1: a check failed, and the
    container is kept.

    With --etcd the container is on an etcd that the run starts for itself. Its members are then
    killed, stopped and started again, too, its history is compacted, its leader moved, and the
    connections to it are cut; workers are stopped for longer than their leases last. In the end,
    while they observe, a snapshot is restored.

    USAGE: torture [--seconds <n>] [--processes <p>] [--seed <s>] [--directory <dir>]
                   [--etcd [--members 1|3]] [--only <kinds>]
                   [--break rule2|rule5|queue|put|watch|fence] [--other <program>] [--verbose]

    OPTIONS:
      --seconds <n>       The duration of the work. (default: 10)
      --processes <p>     The number of concurrent workers. (default: 6)
      --seed <s>          Repeats the choices of an earlier run, as far as the kernel lets them.
      --directory <dir>   The place of the temporary container. (default: TMPDIR or /tmp)
      --etcd              On etcd instead of in a directory.
      --members <n>       The number of members of that etcd: 1 or 3. (default: 1)
      --only <kinds>      A comma-separated list of values, queues, requests, files, logs,
                          presence, watches. Watches need etcd.
      --break <rule>      Leaves a rule out, to see that the checks find it: rule2 (stage through
                          the lease's own descriptor), rule5 (remove a taken-over lease before
                          acting) or queue (a consumer uses its directory by its former name);
                          on etcd put (a change has no condition), watch (a watch goes on one
                          revision too late) or fence (nobody asks whether its lease has ended).
                          Only debug builds can stop processes between two system calls, where
                          it shows.
      --other <program>   Every second worker runs this program: torture, built from another commit
                          whose containers have the same format.
      --verbose           Report what happens to the workers.
      -h, --help          Show help information.
    """

  /// - Returns: nil if help was requested.
  init?(_ arguments: [String]) throws(Misuse) {
    var list = ArgumentList(arguments)
    var isOnEtcd = false
    var chosen: Set<Kind>?
    while let option = list.next() {
      switch option {
      case "-h", "--help": return nil
      case "--verbose": isVerbose = true
      case "--seconds":
        seconds = try list.value(of: option, "a number of seconds") { text in
          Double(text).flatMap { $0 > 0 && $0 <= 1_000_000 ? $0 : nil }
        }
      case "--processes":
        processes = try list.value(of: option, "a number from 1 to 200") { text in
          Int(text).flatMap { (1...200).contains($0) ? $0 : nil }
        }
      case "--seed": seed = try list.value(of: option, "a number") { UInt64($0) }
      case "--directory": directory = try list.value(of: option, "a directory") { $0 }
      case "--break":
        #if DEBUG
          brokenRule = try list.value(of: option, "rule2, rule5, queue, put, watch or fence") {
            LeaseFault(rawValue: $0)?.rawValue ?? EtcdFault(rawValue: $0)?.rawValue
          }
        #else
          throw Misuse("\(option) needs a debug build")
        #endif
      case "--other":
        other = try list.value(of: option, "a program") { $0.isEmpty ? nil : $0 }
      case "--etcd": isOnEtcd = true
      case "--members":
        members = try list.value(of: option, "1 or 3") { ["1": 1, "3": 3][$0] }
      case "--only":
        let all = Kind.text(Kind.ofDirectories.union(Kind.onEtcd))
        chosen = try list.value(of: option, "a list of " + all, Kind.list)
      default: throw Misuse("unknown option “\(option)”; see torture --help")
      }
    }
    try settle(isOnEtcd: isOnEtcd, chosen)
  }

  private mutating func settle(isOnEtcd: Bool, _ chosen: Set<Kind>?) throws(Misuse) {
    guard isOnEtcd || members == nil else { throw Misuse("--members needs --etcd") }
    if isOnEtcd { members = members ?? 1 }
    let possible = isOnEtcd ? Kind.onEtcd : Kind.ofDirectories
    kinds = chosen ?? possible
    guard kinds.isSubset(of: possible) else {
      let others = Kind.text(kinds.subtracting(possible))
      throw Misuse("not possible \(isOnEtcd ? "on" : "without") etcd: \(others)")
    }
    #if DEBUG
      guard let brokenRule, isOnEtcd == (EtcdFault(rawValue: brokenRule) == nil) else { return }
      throw Misuse(
        "--break \(brokenRule) is not possible \(isOnEtcd ? "on" : "without") etcd")
    #endif
  }

  /// The options that repeat the run, besides the seed.
  var text: String {
    let engine = members.map { " --etcd --members \($0)" } ?? ""
    let fault = brokenRule.map { " --break \($0)" } ?? ""
    let all = members == nil ? Kind.ofDirectories : Kind.onEtcd
    let only = kinds == all ? "" : " --only \(Kind.text(kinds))"
    let others = other.map { " --other \($0)" } ?? ""
    return "--processes \(processes) --seconds \(seconds)\(engine)\(only)\(fault)\(others)"
  }
}
