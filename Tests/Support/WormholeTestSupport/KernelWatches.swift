import WormholeSystem

/// The watches of this process, from the kernel (proc(5), fdinfo).
package enum KernelWatches {
  /// Returns whether there is a watch for a directory.
  package static func contain(_ path: String) throws -> Bool {
    let inode = "ino:" + String(try fileStatus(path).inode, radix: 16) + " "
    for entry in try FileDescriptor.open("/proc/self/fdinfo", [.readOnly, .directory]).entries() {
      do throws(Errno) {
        let bytes = try FileDescriptor.open("/proc/self/fdinfo/" + entry.name.text, .readOnly)
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
