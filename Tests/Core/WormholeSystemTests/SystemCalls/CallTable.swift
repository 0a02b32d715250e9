import WormholeSystem
import WormholeToolkit

/// The table of all wrapped calls, with one row each.
///
/// These wrappers do not use `perform` and have no row:
/// - clock_gettime, getpid, geteuid, getegid, getgroups, sigprocmask, signal, raise: cannot be
///   interrupted, and fail only for arguments that are not passed here;
/// - nanosleep: its interruption is not an error here, because `pauseThread` may end early;
/// - getenv, getpwuid_r, strerror_r, isatty and the terminal's size: the answer "unknown" is
///   enough;
/// - dlopen, dlsym: no system calls, and nil is their only failure;
/// - the preparations of posix_spawn: memory only; they return the error number and are checked.
enum CallTable {
  static let rows = files + copying + names + entries + locksAndEvents + processes

  static let files: [CallRow] = [
    CallRow(.openat, "hello") { bench in
      try bench.file("file", "hello").close()
      let file = try bench.act {
        SharedDescriptor(try FileDescriptor.open("\(bench.path)/file", .readOnly))
      }
      return text(try file.descriptor.readToEnd(expectedBytes: 5, maximumBytes: 5))
    },
    CallRow(.openat2, "hello") { bench in
      try bench.file("file", "hello").close()
      let directory = try bench.opened()
      let file = try bench.act {
        SharedDescriptor(
          try FileDescriptor.openBeneath("file", at: directory.rawValue, .readOnly))
      }
      return text(try file.descriptor.readToEnd(expectedBytes: 5, maximumBytes: 5))
    },
    CallRow(.read, "hello") { bench in
      let file = try bench.file("file", "hello")
      return text(try bench.act { try file.readToEnd(expectedBytes: 5, maximumBytes: 5) })
    },
    CallRow(.write, "written") { bench in
      let file = try bench.file()
      try bench.act { try file.writeAll(Array("written".utf8)) }
      return bench.content("file")
    },
    CallRow(.lseek, "1") { bench in
      try bench.file().close()
      let directory = try bench.opened()
      return String(try bench.act { try directory.entries().count })
    },
    CallRow(.getdents64, "file") { bench in
      try bench.file().close()
      let directory = try bench.opened()
      return try bench.act { try directory.entries() }.map(\.name.text).joined()
    },
    CallRow(.fstat, "5") { bench in
      let file = try bench.file("file", "hello")
      return String(try bench.act { try file.status().size })
    },
    CallRow(.fstatat, "5") { bench in
      try bench.file("file", "hello").close()
      return String(try bench.act { try fileStatus("\(bench.path)/file").size })
    },
    CallRow(.fstatfs, "true") { bench in
      // 0x9FA0 is PROC_SUPER_MAGIC, statfs(2).
      let proc = try FileDescriptor.open("/proc", [.readOnly, .directory])
      return String(try bench.act { try proc.fileSystem().magic } == 0x9FA0)
    },
    CallRow(.fsync, "written") { bench in
      let file = try bench.file("file", "written")
      try bench.act { try file.synchronize() }
      return bench.content("file")
    },
    CallRow(.syncFileRange, "written") { bench in
      let file = try bench.file("file", "written")
      try bench.act { try file.writeBack() }
      return bench.content("file")
    },
    CallRow(.futimens, "1000000000 5") { bench in
      let file = try bench.file()
      try bench.act { try file.setModified(seconds: 1_000_000_000, nanoseconds: 5) }
      let status = try file.status()
      return "\(status.modifiedSeconds) \(status.modifiedNanoseconds)"
    },
    CallRow(.fchmod, "416") { bench in
      let file = try bench.file()
      try bench.act { try file.setPermissions(0o640) }
      return String(try file.status().permissions)
    },
  ]

  static let names: [CallRow] = [
    CallRow(.mkdirat, "directory") { bench in
      try bench.act { try makeDirectory("\(bench.path)/made") }
      return "\(try fileStatus("\(bench.path)/made").kind)"
    },
    CallRow(.unlinkat, "No such file or directory") { bench in
      try bench.file().close()
      try bench.act { try removeFile("\(bench.path)/file") }
      return bench.content("file")
    },
    CallRow(.renameat, "hello, No such file or directory") { bench in
      try bench.file("old", "hello").close()
      let directory = try bench.opened()
      let at = directory.rawValue
      try bench.act { try rename("old", at: at, to: "new", at: at) }
      return "\(bench.content("new")), \(bench.content("old"))"
    },
    CallRow(.renameat2, "two, one") { bench in
      try bench.file("one", "one").close()
      try bench.file("two", "two").close()
      let directory = try bench.opened()
      let at = directory.rawValue
      try bench.act { try rename("one", at: at, to: "two", at: at, .exchange) }
      return "\(bench.content("one")), \(bench.content("two"))"
    },
    CallRow(.linkat, "hello") { bench in
      try bench.file("old", "hello").close()
      let directory = try bench.opened()
      let at = directory.rawValue
      try bench.act { try link("old", at: at, to: "new", at: at) }
      return bench.content("new")
    },
    CallRow(.readlinkat, "true") { bench in
      let target = try bench.act { try linkTarget("/proc/self") }
      return String(target == String(Program.processID))
    },
  ]

  static func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }
}
