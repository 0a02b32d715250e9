package import Wormhole
import WormholeSystem

/// A container as one file, and back: a copy made by `ContainerCopy`, packed by tar(1) and gzip(1).
///
/// The archive has one directory, `container`, with directories and files only. It has no record of
/// its own: `container.plist` in it has the version of the format, and gzip(1) finds every change of
/// the content by its checksum and its length.
package struct ContainerBackup {
  private static let tree = "container"

  /// The copy that is packed; its progress and its check are also those of the rest.
  package var copy: ContainerCopy

  package init(of source: SharedContainer) {
    copy = ContainerCopy(of: source)
    copy.allowsUse = true
    copy.isDurable = false
  }

  /// Writes the container as it was at one moment; processes may continue to use it.
  ///
  /// Symbolic links and FIFOs that lie beside the container's own entries are left out, and are faults
  /// of the summary; sockets are left out.
  ///
  /// - Parameters:
  ///   - name: The name of the file that is written, for error sentences.
  ///   - output: The file.
  ///   - directory: The place of a copy during the call, under a name that begins with
  ///     `.wormhole-backup-`.
  ///   - deadline: Checked between all steps, and several times a second.
  /// - Returns: What was copied.
  /// - Throws: `WormholeError`, as `ContainerCopy.run`; an error of a program. Then the written
  ///   bytes are incomplete, and `restore` refuses them.
  package func run(
    _ name: String, to output: Int32, stagedIn directory: String,
    until deadline: ContinuousClock.Instant
  ) throws -> ContainerCopy.Summary {
    let action = "back up the container"
    let staging = try StagedDirectory(directory + "/.wormhole-backup-" + Nonce.next(), action)
    defer { staging.remove() }
    var copy = copy
    copy.deadline = deadline
    var done = try copy.run(to: staging.path + "/" + Self.tree, until: deadline)
    try reporting(action, path: staging.path) {
      done.faults.add(try leaveOut(from: staging, check: copy.checkAll))
    }
    try Self.reportingPrograms(action, archive: name, tree: staging.path) {
      // Without what differs from one run to the next.
      try ProgramPair(
        [
          "tar", "--create", "--file=-", "--format=pax", "--pax-option=delete=atime,delete=ctime",
          "--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--hard-dereference",
          Self.tree,
        ], into: ["gzip", "-c", "-n"], to: output, in: staging.root
      ).run(check: copy.checkAll)
    }
    return done
  }

  /// Removes from the copy what an archive may not have.
  private func leaveOut(
    from staging: StagedDirectory, check: @escaping () throws -> Void
  ) throws -> NameFaults {
    var faults = NameFaults()
    var plain = PlainTree(
      refuse: { path, fault, place in
        // tar(1) makes a file of each.
        if fault == .secondName { return }
        let bytes = path.bytes.dropFirst(Self.tree.utf8.count)
        let name = FileName(bytes: Array(path.bytes.split(separator: 0x2F).last ?? []))
        try TreeRemoval().remove(name, at: place.rawValue)
        // A socket is useless without its process.
        if fault == .socket { return }
        faults.add(
          WormholeError(
            .notSupported, "back up the entry",
            path: copy.source.location + String(decoding: bytes, as: UTF8.self),
            reason: "an archive cannot have it, because it is \(fault.words)",
            remedy: "'copy' keeps it"))
      }, check: check)
    try plain.run(FileName(Self.tree), at: staging.root.descriptor.rawValue)
    return faults
  }

  // MARK: Restoring

  /// Creates a container from an archive: complete, or not at all.
  ///
  /// - Parameters:
  ///   - name: The name of the archive, for error sentences.
  ///   - input: The archive.
  ///   - location: A directory that does not exist or is empty, or a place on etcd without a container.
  ///   - group: The group whose container it becomes; nil for none.
  ///   - directory: The place of a copy during the call, if the container will be on etcd; for a
  ///     directory the copy is beside it. Its name contains `.wormhole-restore-`.
  ///   - check: Called between all steps, and several times a second; its errors end the work.
  /// - Throws: `WormholeError`: `damaged` for anything but a whole archive; `formatTooNew`; otherwise as
  ///   `ContainerCopy.run`, or an error of a program.
  package static func restore(
    _ name: String, from input: Int32, to location: String, group: String?,
    stagedIn directory: String, until deadline: ContinuousClock.Instant,
    check: @escaping () throws -> Void = {}
  ) throws -> ContainerCopy.Summary {
    let action = "restore the container"
    var beside = directory
    if !Engines.isMeant(by: location) {
      beside = parentDirectory(of: try SharedContainer.absolute(location))
      try ContainerLocation.create(beside)
    }
    let staging = try StagedDirectory(beside + "/.wormhole-restore-" + Nonce.next(), action)
    defer { staging.remove() }
    try unpack(name, from: input, in: staging, action, check)
    guard let container = try SharedContainer.existing(location: staging.path + "/" + tree) else {
      throw damaged(name, action, "it has no container")
    }
    var copy = ContainerCopy(of: container)
    copy.allowsUse = true
    copy.isStill = true
    copy.check = check
    return try copy.run(to: location, group: group, until: deadline)
  }

  private static func unpack(
    _ name: String, from input: Int32, in staging: StagedDirectory, _ action: String,
    _ check: @escaping () throws -> Void
  ) throws {
    try reportingPrograms(action, archive: name, tree: staging.path) {
      do {
        try ProgramPair(
          ["gzip", "-d", "-c"],
          into: [
            "tar", "--extract", "--file=-", "--no-same-owner", "--same-permissions",
            "--warning=no-timestamp", tree,
          ], from: input, in: staging.root
        ).run(check: check)
      } catch let failure as ProgramPair.Failure where failure.isOfContent {
        throw damaged(name, action, failure.reason)
      }
    }
    try reporting(action, path: staging.path) {
      let root = try fileStatus(FileName(tree), at: staging.root.descriptor.rawValue)
      guard root.kind == .directory else {
        throw damaged(name, action, "\(tree) is not a directory")
      }
      var plain = PlainTree(
        refuse: { path, fault, _ in
          throw damaged(name, action, "\(path.text) is \(fault.words)")
        }, check: check)
      try plain.run(FileName(tree), at: staging.root.descriptor.rawValue)
    }
  }

  /// Words the programs' errors: gzip(1) reads or writes the archive, tar(1) the tree.
  private static func reportingPrograms(
    _ action: String, archive: String, tree: String, _ body: () throws -> Void
  ) throws {
    do {
      try body()
    } catch let failure as ProgramPair.Failure {
      throw failure.reported(action, path: failure.isOfTar ? tree : archive)
    } catch let error as Errno {
      throw WormholeError.refused(action, path: archive, error)
    }
  }

  private static func damaged(_ name: String, _ action: String, _ reason: String) -> WormholeError {
    WormholeError(.damaged, action, path: name, reason: "the backup is damaged: \(reason)")
  }
}
