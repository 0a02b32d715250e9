import WormholeSystem
import WormholeToolkit

extension CallTable {
  static let copying: [CallRow] = [
    CallRow(.cloneFile, "hello") { bench in
      let source = try bench.file("source", "hello")
      let target = try bench.file("target")
      do {
        try bench.act { try target.clone(of: source) }
      } catch let error as Errno {
        // Most file systems cannot; ioctl_ficlone(2) lists these errors.
        guard [.unsupported, .unsuitableRequest, .invalidArgument].contains(error) else {
          throw error
        }
        try target.writeAll(Array("hello".utf8))
      }
      return bench.content("target")
    },
    CallRow(.copyFileRange, "ell") { bench in
      let source = try bench.file("source", "hello")
      let target = try bench.file("target", "?")
      let count = try bench.act { try target.copyRange(of: source, from: 1, count: 3) }
      return String(bench.content("target").suffix(Int(count)))
    },
    CallRow(.ftruncate, "hell") { bench in
      let file = try bench.file("file", "hello")
      try bench.act { try file.setLength(4) }
      return bench.content("file")
    },
    CallRow(.fsetxattr, "value") { bench in
      let file = try bench.file()
      try bench.act { try file.setAttribute(FileName("user.name"), Array("value".utf8)) }
      return text(try file.attribute(FileName("user.name")))
    },
    CallRow(.lsetxattr, "value") { bench in
      let file = try bench.file()
      try bench.act {
        try setAttribute(
          FileName("user.name"), Array("value".utf8), of: bench.path + "/file")
      }
      return text(try file.attribute(FileName("user.name")))
    },
    CallRow(.fgetxattr, "value") { bench in
      let file = try bench.file()
      try file.setAttribute(FileName("user.name"), Array("value".utf8))
      return text(try bench.act { try file.attribute(FileName("user.name")) })
    },
    CallRow(.flistxattr, "user.one user.two") { bench in
      let file = try bench.file()
      for name in ["user.two", "user.one"] { try file.setAttribute(FileName(name), [1]) }
      return try bench.act { try file.attributeNames() }.map(\.text).filter {
        $0.hasPrefix("user.")
      }.sorted().joined(separator: " ")
    },
    CallRow(.fremovexattr, "No data available") { bench in
      let file = try bench.file()
      try file.setAttribute(FileName("user.name"), [1])
      try bench.act { try file.removeAttribute(FileName("user.name")) }
      do {
        return "\(try file.attribute(FileName("user.name")))"
      } catch let error as Errno {
        return error.description
      }
    },
    CallRow(.fchown, "true") { bench in
      let file = try bench.file()
      let old = try file.status()
      try bench.act { try file.setOwner(nil, group: old.group) }
      let new = try file.status()
      return String(new.owner == old.owner && new.group == old.group)
    },
  ]

  static let entries: [CallRow] = [
    CallRow(.fchownat, "true") { bench in
      let directory = try bench.link(to: "nowhere")
      let old = try fileStatus(FileName("link"), at: directory.rawValue)
      try bench.act {
        try setOwner(FileName("link"), at: directory.rawValue, old.owner, group: nil)
      }
      let new = try fileStatus(FileName("link"), at: directory.rawValue)
      return String(new.owner == old.owner && new.group == old.group)
    },
    CallRow(.fchmodat, "416") { bench in
      try bench.file().close()
      let directory = try bench.opened()
      try bench.act { try setPermissions(FileName("file"), at: directory.rawValue, 0o640) }
      return String(try fileStatus("\(bench.path)/file").permissions)
    },
    CallRow(.utimensat, "1000000000 5") { bench in
      let directory = try bench.link(to: "nowhere")
      try bench.act {
        try setModified(
          FileName("link"), at: directory.rawValue, seconds: 1_000_000_000, nanoseconds: 5)
      }
      let status = try fileStatus("\(bench.path)/link")
      return "\(status.modifiedSeconds) \(status.modifiedNanoseconds)"
    },
    CallRow(.symlinkat, "nowhere") { bench in
      let directory = try bench.opened()
      let target = FileName("nowhere")
      try bench.act {
        try makeSymbolicLink(FileName("link"), at: directory.rawValue, target: target)
      }
      return try linkTarget("\(bench.path)/link")
    },
    CallRow(.mkfifoat, "fifo") { bench in
      let directory = try bench.opened()
      try bench.act { try makeFIFO(FileName("made"), at: directory.rawValue) }
      return "\(try fileStatus("\(bench.path)/made").kind)"
    },
  ]
}

extension CallBench {
  /// Returns the directory with a symbolic link in it.
  fileprivate func link(to target: String) throws -> FileDescriptor {
    let directory = try opened()
    try makeSymbolicLink(
      FileName("link"), at: directory.rawValue, target: FileName(target))
    return directory
  }
}
