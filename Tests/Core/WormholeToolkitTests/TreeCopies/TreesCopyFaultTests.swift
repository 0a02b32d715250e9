import Foundation
import Testing
import WormholeTestSupport

@testable import WormholeSystem

#if DEBUG
  @Suite("While an item is copied", .blocking)
  struct TreesCopyFaultTests {
    /// Creates an item of six entries without a shell, because this happens a thousand times.
    private func make(_ scene: TreesScene) throws {
      for name in [scene.item, scene.staged] { try TreeRemoval().remove(name, at: scene.at) }
      let item = scene.place.path + "/item"
      for directory in ["", "/a", "/a/b"] { try makeDirectory(item + directory) }
      for file in ["/a/b/c", "/d"] {
        let file = try FileDescriptor.open(item + file, [.writeOnly, .create])
        try file.writeAll(Array("hello\n".utf8))
      }
      try makeSymbolicLink(
        FileName(item + "/e"), at: Directory.current, target: FileName("x"))
      try makeFIFO(FileName(item + "/f"), at: Directory.current)
    }

    /// Runs a copy for each of its calls, with a disturbance just before that call.
    ///
    /// - Parameter check: Receives the scene afterwards, and the error of the copy.
    private func atEachCall(
      _ happening: @escaping @Sendable (TreesScene) throws -> Void,
      check: (TreesScene, (any Error)?) throws -> Void
    ) throws {
      let scene = try TreesScene()
      for call in 0..<1_000 {
        try make(scene)
        let plan = Faults.Plan { _, index in
          guard index == call else { return .proceed }
          Faults.$plan.withValue(nil) {
            do { try happening(scene) } catch { Issue.record(error) }
          }
          return .proceed
        }
        var failure: (any Error)?
        do { try Faults.$plan.withValue(plan) { try scene.copy() } } catch { failure = error }
        if plan.calls <= call { return #expect(call > 50, "the copy takes more calls than that") }
        try check(scene, failure)
      }
      Issue.record("the copy of six entries takes a thousand calls")
    }

    @Test(
      "entries may vanish at any moment: the others are copied", arguments: ["a", "a/b", "d", "e"])
    func vanishing(_ name: String) throws {
      try atEachCall { scene in
        try FileManager.default.removeItem(atPath: scene.place.path + "/item/" + name)
      } check: { scene, failure in
        #expect(failure == nil)
        let names = try FileManager.default.subpathsOfDirectory(
          atPath: scene.place.path + "/staged")
        let others = ["a", "a/b", "a/b/c", "d", "e", "f"].filter {
          $0 != name && !$0.hasPrefix(name + "/")
        }
        #expect(Set(names).isSuperset(of: others))
        let content = scene.place.path + "/staged/" + (name == "d" ? "a/b/c" : "d")
        #expect(try String(contentsOfFile: content, encoding: .utf8).count == 6)
      }
    }

    @Test("the item may vanish at any moment: a part of it is copied, or none with an error")
    func itemVanishing() throws {
      try atEachCall { scene in
        try FileManager.default.removeItem(atPath: scene.place.path + "/item")
      } check: { _, failure in
        guard let failure else { return }
        #expect((failure as? TreeError)?.reason == .refused(.noSuchFile), "\(failure)")
      }
    }

    @Test(
      "a file may become a FIFO, a link, a directory at any moment: nothing waits or follows it",
      arguments: ["fifo", "link", "directory"])
    func becoming(_ kind: String) throws {
      try atEachCall { scene in
        let path = scene.place.path + "/item/d"
        try FileManager.default.removeItem(atPath: path)
        switch kind {
        case "fifo": try makeFIFO(FileName(path), at: Directory.current)
        case "link":
          try FileManager.default.createSymbolicLink(
            atPath: path, withDestinationPath: "/etc/passwd")
        default: try makeDirectory(path)
        }
      } check: { scene, failure in
        #expect(failure == nil)
        let status = try fileStatus(scene.place.path + "/staged/d")
        #expect(status.kind != .regular || status.size == 6)
      }
    }

    @Test("an error of the disk at any call is the error of the copy, with a path")
    func failing() throws {
      var unneeded = 0
      let scene = try TreesScene()
      for call in 0..<1_000 {
        try make(scene)
        let plan = Faults.Plan { name, index in
          index == call && name != .close ? .fail(.inputOutput) : .proceed
        }
        var failure: (any Error)?
        do { try Faults.$plan.withValue(plan) { try scene.copy() } } catch { failure = error }
        if plan.calls <= call { return #expect(call > 50 && unneeded < 20, "\(unneeded)") }
        if let failure {
          let error = try #require(failure as? TreeError)
          #expect(error.reason == .refused(.inputOutput) && error.path.text.hasPrefix("item"))
        } else {
          // A call that is not needed: a close, or a second look.
          let differences = try scene.differences()
          #expect(differences == "")
          unneeded += 1
        }
      }
    }

    @Test(
      "content is copied in any remaining way of the kernel",
      arguments: [
        [SystemCall.cloneFile], [.cloneFile, .copyFileRange],
      ])
    func ways(_ refused: [SystemCall]) throws {
      let scene = try TreesScene()
      try scene.shell(
        """
        mkdir item; head -c 3000000 /dev/urandom >item/a; head -c 10 /dev/urandom >item/b; touch item/c
        truncate -s 5M item/holes; head -c 100000 /dev/urandom |
          dd of=item/holes bs=4096 seek=300 conv=notrunc status=none
        """)
      for error in [Errno.crossesDevices, .invalidArgument, .noFunction, .unsupported] {
        let plan = Faults.Plan { call, _ in refused.contains(call) ? .fail(error) : .proceed }
        try Faults.$plan.withValue(plan) { try scene.copy() }
        let differences = try scene.differences()
        #expect(differences == "", "\(error)")
        #expect(try scene.shell("du -k staged/holes | cut -f1; rm -r staged").count <= 4)
      }
    }

    @Test("a kernel that copies nothing and reports no error is not trusted")
    func nothingCopied() throws {
      let scene = try TreesScene()
      try scene.shell("head -c 3000000 /dev/urandom >item")
      let plan = Faults.Plan { call, _ in
        switch call {
        case .cloneFile: .fail(.unsupported)
        case .copyFileRange: .skip
        default: .proceed
        }
      }
      try Faults.$plan.withValue(plan) { try scene.copy() }
      #expect(try scene.shell("cmp item staged") == "")
    }
  }
#endif
