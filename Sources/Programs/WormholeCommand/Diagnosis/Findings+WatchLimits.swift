import AppGroup

/// The kernel's limits for watching files: a process without a watch must check at intervals.
extension Findings {
  static func watchLimits(_ report: ContainerReport) -> [Finding] {
    let use = report.watches
    let names = [report.names, report.own].reduce(0) {
      $0 + $1.values.count + $1.notifications.count
    }
    let findings = [
      limit(
        "watches", "max_user_watches", use.watches, use.maximumWatches,
        needed: max(use.watches, names)),
      limit(
        "inotify instances (one for each process that listens)", "max_user_instances",
        use.instances, use.maximumInstances, needed: use.instances),
    ].compactMap { $0 }
    guard findings.isEmpty, let refusal = use.refusal else { return findings }
    return [
      Finding(
        kind: .watchLimit,
        what: "No further file can be watched, so listeners check five times a second: "
          + "\(refusal.reason).",
        path: refusal.path, advice: "To raise the limits, as root:",
        command: "sysctl fs.inotify.max_user_instances=1024 fs.inotify.max_user_watches=1048576")
    ]
  }

  /// Nine tenths count as all: a build tool or an editor takes the rest at once.
  private static func limit(
    _ noun: String, _ setting: String, _ used: Int, _ maximum: Int?, needed: Int
  ) -> Finding? {
    guard let maximum, needed >= maximum / 10 * 9 else { return nil }
    let demand = needed > used ? ", and the container has \(needed) names" : ""
    return Finding(
      kind: .watchLimit,
      what: "The user's \(noun) are nearly used up: \(used) of \(maximum)\(demand). Listeners "
        + "without one check five times a second.",
      path: "/proc/sys/fs/inotify/\(setting)", advice: "To raise the limit, as root:",
      command: "sysctl fs.inotify.\(setting)=\(max(needed, maximum) * 2)")
  }
}
