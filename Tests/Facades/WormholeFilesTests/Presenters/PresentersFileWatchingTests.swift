import Synchronization
import Testing
import Wormhole
import WormholeSystem
import WormholeTestSupport

@testable import WormholeFiles

@Suite("A presenter of a file, when others do not coordinate", .blocking)
struct PresentersFileWatchingTests {
  let scene: PresenterScene

  init() throws {
    scene = try PresenterScene()
    try scene.shell("echo old > file")
  }

  @Test(
    "gets changes of content and attributes by any program",
    arguments: [
      "echo x > file", "echo x >> file", "printf oLd | dd of=file conv=notrunc status=none",
      "touch -d @1 file",
      "python3 -c 'import os; os.setxattr(\"file\", \"user.mark\", b\"1\")'",
      "chmod 600 file; chmod 640 file", "rm file",
      "echo new > file.tmp; mv file.tmp file",
    ])
  func changes(_ command: String) throws {
    try scene.presenting("file") { presenter in
      try scene.shell(command)
      try scene.wait(presenter, for: "changed")
      #expect(!presenter.heard.contains { $0 != "changed" })
    }
  }

  @Test(
    "takes a backup and a new file for a change",
    arguments: [
      "mv file file~; echo new > file",
      // A link to the old file would be no change for a look after both steps.
      "echo new > x; python3 -c 'import os; os.rename(\"file\", \"y\"); os.symlink(\"x\", \"file\")'",
    ])
  func backup(_ command: String) throws {
    var heard: [String] = []
    // A machine that pauses for 20 ms between the two steps shows a move.
    for _ in 0..<30 {
      heard = try scene.presenting("file") { presenter in
        try scene.shell(command)
        try eventually("a report") { !presenter.heard.isEmpty }
        return presenter.heard
      }
      if heard.first?.hasPrefix("moved:") != true { break }
      try scene.shell("rm -r ./*; echo old > file")
    }
    #expect(Set(heard) == ["changed"])
  }

  @Test("gets the change of a program that writes and keeps the file open")
  func keptOpen() throws {
    try scene.presenting("file") { presenter in
      let file = try FileDescriptor.open(scene.path("file"), .writeOnly)
      try file.writeAll(Array("in place".utf8))
      try scene.wait(presenter, for: "changed")
      try file.close()
    }
  }

  @Test("takes a write without a trace for a change only soon after the previous one")
  func noTrace() throws {
    let file = try FileDescriptor.open(scene.path("file"), .writeOnly)
    let now = realTime()
    // Kernels before 6.13 give all writes within some milliseconds the same time.
    for (seconds, mayDiffer) in [(now.seconds + 1, true), (now.seconds - 60, false)] {
      try file.setModified(seconds: seconds, nanoseconds: 0)
      let status = try file.status()
      let known = EntryStatus(status)
      #expect(known.differs(from: status, after: .modified, writing: .modified) == mayDiffer)
      #expect(!known.differs(from: status, after: .selfMoved, writing: .modified))
    }
  }

  @Test("gets each of several writes of the same size within one tick of the clock")
  func sameTick() throws {
    try scene.presenting("file") { presenter in
      for round in 0..<50 {
        presenter.forget()
        let file = try FileDescriptor.open(scene.path("file"), .writeOnly)
        try file.writeAll(Array("\(round % 10)".utf8))
        try file.close()
        try scene.wait(presenter, for: "changed")
      }
    }
  }

  @Test(
    "gets a file that appears, even with its parent directories, is removed, and reappears")
  func appearing() throws {
    try scene.presenting("new/deep/file") { presenter in
      try scene.shell("mkdir new; mkdir new/deep; echo 1 > new/deep/file")
      try scene.wait(presenter, for: "changed")
      for command in ["rm -r new", "mkdir -p new/deep; echo 2 > new/deep/file"] {
        presenter.forget()
        try scene.shell(command)
        try scene.wait(presenter, for: "changed")
      }
    }
  }

  // The kernel reports the end of a directory itself only when no process has it open any more.
  @Test(
    "gets a file whose directory was removed while a process had it open, and made again",
    arguments: ["new", "new/deep"], [true, false])
  func removalOfOpen(_ name: String, isThere: Bool) throws {
    try scene.shell("mkdir -p new/deep; ! \(isThere) || echo 1 > new/deep/file")
    try scene.presenting("new/deep/file") { presenter in
      let descriptor = try FileDescriptor.open(scene.path(name), [.readOnly, .directory])
      try scene.shell("rm -r new")
      if isThere { try scene.wait(presenter, for: "changed") }
      presenter.forget()
      try scene.shell("mkdir -p new/deep; echo 2 > new/deep/file")
      try scene.wait(presenter, for: "changed")
      withExtendedLifetime(descriptor) {}
    }
  }

  // The directory used to be looked up, then another process created it, and only then was its
  // parent watched. So the creation was not reported, and the directory was not watched.
  @Test("gets a file in a directory that is created at any moment while its path is being watched")
  func appearingMeanwhile() throws {
    try scene.shell("mkdir new")
    let item = try ItemPath.canonical(scene.path("new/deep/file"), followingLink: false)
    let calls = Faults.calls { ItemWatcher { _ in }.present(item) }
    #expect(calls > 3)
    for moment in 0..<calls {
      let heard = Mutex<[PresenterNotice]>([])
      let watcher = ItemWatcher { notices in heard.withLock { $0 += notices } }
      defer { watcher.cancel() }
      let making = Faults.Plan.acting(before: moment) { [scene] in
        try makeDirectory(scene.path("new/deep"))
      }
      Faults.$plan.withValue(making) { watcher.present(item) }
      try scene.shell("mkdir -p new/deep; echo 1 > new/deep/file")
      try eventually("the file, its directory made before call \(moment)") {
        heard.withLock { $0.contains(.changed) }
      }
      try scene.shell("rm -r new/deep")
    }
  }

  @Test(
    "gets its new place after a move, even of a parent directory",
    arguments: [
      ("mv file other", "moved:other", "echo x > other"),
      ("mkdir d; mv file d/file2", "moved:file2", "echo x > d/file2"),
    ])
  func moves(_ command: String, _ line: String, _ change: String) throws {
    try scene.presenting("file") { presenter in
      try scene.shell(command)
      try scene.wait(presenter, for: line)
      #expect(presenter.heard == [line])
      try scene.shell(change)
      try scene.wait(presenter, for: "changed")
    }
  }

  @Test("gets the move of a parent directory")
  func parentMoves() throws {
    try scene.shell("mkdir -p a/b; mv file a/b/file")
    try scene.presenting("a/b/file") { presenter in
      try scene.shell("mv a c")
      try scene.wait(presenter, for: "moved:file")
      #expect(RegisteredPresenter.registered(presenter)?.path?.text == scene.path("c/b/file"))
      try scene.shell("rm -r c")
      try scene.wait(presenter, for: "changed")
    }
  }

  @Test("gets no change of its neighbours")
  func neighbours() throws {
    try scene.presenting("file") { presenter in
      try scene.shell("echo x > beside; mkdir d; mv beside d; rm -r d; ln -s file link")
      try scene.shell("mv file last")
      try scene.wait(presenter, for: "moved:last")
      #expect(presenter.heard == ["moved:last"])
    }
  }

  @Test("gets nothing after its removal, and may be added and removed repeatedly")
  func removal() throws {
    try scene.presenting("file") { other in
      try scene.presenting("file") { presenter in
        try RegisteredPresenter.add(presenter)
        RegisteredPresenter.remove(presenter)
        try scene.shell("echo 1 > file")
        try scene.wait(presenter, for: "changed")
        RegisteredPresenter.remove(presenter)
        presenter.forget()
        other.forget()
        try scene.shell("echo 12 > file")
        try scene.wait(other, for: "changed")
        #expect(presenter.heard.isEmpty)
      }
    }
  }
}
