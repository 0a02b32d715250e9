/// The freezer of control groups (cgroups(7)): `systemctl freeze`, a paused container.
///
/// /proc shows a frozen process as sleeping or, with the first version of control groups, as
/// waiting in the kernel. Only the files of its group tell the two apart.
enum Freezer {
  /// The directory where a hierarchy of groups is mounted, and the group at its top.
  private struct Hierarchy {
    let mount: String
    let top: String

    /// The path of a file of a group; nil for a group that this process cannot see.
    func path(of file: String, in group: Substring) -> String? {
      let prefix = top == "/" ? "" : top
      guard group.hasPrefix(prefix) else { return nil }
      return mount + group.dropFirst(prefix.utf8.count) + "/" + file
    }
  }

  /// The hierarchies of the second and the first version. They are mounted when the machine starts.
  private static let hierarchies: (Hierarchy?, first: Hierarchy?) = {
    // Without /proc no process can be looked up either.
    let text = try? procFile("/proc/self/mountinfo", maximumBytes: 1 << 20)
    return hierarchies(in: String(decoding: text ?? [], as: UTF8.self))
  }()

  // "30 23 0:26 / /sys/fs/cgroup rw,relatime shared:4 - cgroup2 cgroup2 rw": an unknown number of
  // fields stands before the dash.
  private static func hierarchies(in text: String) -> (Hierarchy?, first: Hierarchy?) {
    var found: (Hierarchy?, first: Hierarchy?)
    for line in text.split(separator: "\n") {
      let fields = line.split(separator: " ")
      guard let dash = fields.firstIndex(of: "-"), dash >= 6, fields.count > dash + 3 else {
        continue
      }
      let hierarchy = Hierarchy(mount: String(fields[4]), top: String(fields[3]))
      switch fields[dash + 1] {
      case "cgroup2": found.0 = found.0 ?? hierarchy
      case "cgroup" where fields[dash + 3].split(separator: ",").contains("freezer"):
        found.first = found.first ?? hierarchy
      default: continue
      }
    }
    return found
  }

  /// Whether a process is frozen; false if this user cannot see it.
  ///
  /// - Complexity: reads one file of the process, and in most cases one of its group.
  static func hasFrozen(_ processID: Int32) -> Bool {
    // The process has ended, or belongs to another user whose processes /proc hides.
    guard let record = try? procRecord("/proc/\(processID)/cgroup") else { return false }
    return record.split(separator: UInt8(ascii: "\n")).contains { bytes in
      // The top group cannot be frozen, and most processes are in no other.
      guard !bytes.suffix(2).elementsEqual(":/".utf8) else { return false }
      // "0::/a/b" in the second version, "6:freezer:/a/b" in the first.
      let fields = String(decoding: bytes, as: UTF8.self)
        .split(separator: ":", maxSplits: 2, omittingEmptySubsequences: false)
      guard fields.count == 3 else { return false }
      if fields[0] == "0" {
        return shows("frozen 1", hierarchies.0?.path(of: "cgroup.events", in: fields[2]))
      }
      return fields[1].split(separator: ",").contains("freezer")
        && shows("FROZEN", hierarchies.first?.path(of: "freezer.state", in: fields[2]))
    }
  }

  private static func shows(_ line: String, _ path: String?) -> Bool {
    // The process has just left the group, or the group cannot be seen from here.
    guard let path, let text = try? procRecord(path) else { return false }
    return String(decoding: text, as: UTF8.self).split(separator: "\n").contains { $0 == line }
  }
}
