import WormholeSystem

/// The watches of a process, from the kernel (proc(5), fdinfo).
package enum KernelWatches {
  /// Returns whether this process has a watch for a directory.
  package static func contain(_ path: String) throws -> Bool {
    try contain(inode: try fileStatus(path).inode, of: "self")
  }

  fileprivate static func contain(inode: UInt64, of process: String) throws -> Bool {
    let inode = "ino:" + String(inode, radix: 16) + " "
    let files = "/proc/\(process)/fdinfo"
    for entry in try FileDescriptor.open(files, [.readOnly, .directory]).entries() {
      do throws(Errno) {
        let bytes = try FileDescriptor.open(files + "/" + entry.name.text, .readOnly)
          .readToEnd(expectedBytes: 0, maximumBytes: 1 << 24)
        let text = String(decoding: bytes, as: UTF8.self)
        if text.contains("inotify") && text.contains(inode) { return true }
      } catch {
        // Closed meanwhile.
        continue
      }
    }
    return false
  }
}

extension Participant {
  /// Returns whether the process waits for the lease of a value: then it watches the directory that
  /// the holder has locked. A process that has the lease, or only tries to get it, watches nothing.
  package func waitsForLease(of key: String, in directory: TemporaryDirectory) throws -> Bool {
    let held = directory.path + "/values/\(key)/lease/held"
    // Missing while one process takes the lease from another.
    guard let inode = try ifPresent(fileStatus(held))?.inode else { return false }
    return try KernelWatches.contain(inode: inode, of: "\(processID)")
  }
}
