import Wormhole
import WormholeSystem

/// The inotify instances and watches of this user's processes, as far as /proc shows them, and the
/// kernel's limits (inotify(7), "/proc interfaces"; proc_pid_fdinfo(5)).
enum WatchUseReading {
  private static let maximumProcesses = 10_000
  private static let maximumDescriptors = 10_000
  private static let maximumBytes = 64 << 20

  static func read(for directory: String) -> ContainerReport.WatchUse {
    var use = ContainerReport.WatchUse()
    use.refusal = refusal(directory)
    use.maximumWatches = number("/proc/sys/fs/inotify/max_user_watches")
    use.maximumInstances = number("/proc/sys/fs/inotify/max_user_instances")
    forEachQueue { path in
      use.instances += 1
      use.watches += watches(path)
    }
    return use
  }

  /// Other users' and invisible processes may use up the limits, too: only a trial is conclusive.
  private static func refusal(_ directory: String) -> WormholeError? {
    do throws(Errno) {
      let queue = try FileDescriptor.eventQueue()
      _ = try queue.addWatch(directory, [.selfDeleted, .onlyDirectory, .doNotFollow])
      return nil
    } catch {
      return .refused("watch the container", path: directory, error)
    }
  }

  // Between any two of these looks a process may end or change its user; then it has nothing.

  private static func list(_ path: String, _ limit: Int) -> [String] {
    do throws(Errno) {
      // /proc has magic links on the path, which openBeneath refuses.
      let directory = try FileDescriptor.open(path, [.readOnly, .directory])
      var names: [String] = []
      while names.count < limit, try directory.nextEntries({ names.append($0.name.text) }) {}
      return names
    } catch {
      return []
    }
  }

  // A line is "inotify wd:3 ino:9e7e sdev:800013 mask:800afce ignored_mask:0 …".
  private static func watches(_ path: String) -> Int {
    text(path).split(separator: UInt8(ascii: "\n")).count { $0.starts(with: "inotify ".utf8) }
  }

  /// - Parameter body: Receives the /proc path of an event queue.
  private static func forEachQueue(_ body: (String) -> Void) {
    for process in list("/proc", maximumProcesses) {
      guard process.allSatisfy({ $0.isNumber }),
        // A process that has ended has no user, see above.
        (try? fileStatus("/proc/" + process).owner) == Program.effectiveUser
      else { continue }
      let descriptors = "/proc/" + process + "/fd"
      for descriptor in list(descriptors, maximumDescriptors) {
        // A closed descriptor is not a queue, see above.
        guard (try? linkTarget(descriptors + "/" + descriptor)) == "anon_inode:inotify"
        else { continue }
        body("/proc/" + process + "/fdinfo/" + descriptor)
      }
    }
  }

  private static func number(_ path: String) -> Int? {
    // In one read: the kernel returns the number only to the first read, however short it is.
    let digits = text(path, expectedBytes: 64).prefix { $0 != UInt8(ascii: "\n") }
    return Int(String(decoding: digits, as: UTF8.self))
  }

  private static func text(_ path: String, expectedBytes: Int = 0) -> [UInt8] {
    // For an ended process nothing is read, see above.
    let text = try? FileDescriptor.open(path, .readOnly).readToEnd(
      expectedBytes: expectedBytes, maximumBytes: maximumBytes)
    return text ?? []
  }
}
