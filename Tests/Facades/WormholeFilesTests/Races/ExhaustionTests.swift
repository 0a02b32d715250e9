#if DEBUG
  import FoundationEssentials
  import Testing
  import Wormhole
  import WormholeSystem
  import WormholeTestSupport

  @testable import WormholeFiles

  @Suite("When the disk or the descriptors are used up", .blocking)
  struct ExhaustionTests {
    @Test(
      "a change fails with its reason, the item is as it was, and nothing is left",
      .enabled(if: MountNamespace.isPossible))
    func fullDisk() throws {
      let mounts = try MountNamespace()
      try mounts.run("mkdir items && mount -t tmpfs -o size=512k,mode=700 tmpfs items")
      try mounts.run("mkdir items/d && dd if=/dev/zero of=items/a bs=1k count=100 status=none")
      try mounts.run("cp items/a items/d/file")
      try mounts.run("cat /dev/zero >items/filling || true")
      let before = try mounts.run("find items | sort; cksum items/a items/d/file")
      for name in ["a", "d"] {
        let url = URL(filePath: mounts.inside + "/items/" + name)
        for options in [WritingOptions.forReplacing, []] {
          let error = try #require(throws: (any Error).self) {
            try FileCoordinator().coordinate(writingItemAt: url, options: options) {
              try ItemText.write(String(repeating: "x", count: 9_000), to: $0.path)
            }
          }
          if options == [], let error = error as? WormholeError {
            #expect(error.code == .noSpace && error.path == url.path, "\(error)")
          }
          if options == [] { #expect(error is WormholeError) }
        }
      }
      #expect(try mounts.run("find items | sort; cksum items/a items/d/file") == before)
      try mounts.run("rm items/filling")
      try FileCoordinator().coordinate(
        writingItemAt: URL(filePath: mounts.inside + "/items/a")
      ) { try ItemText.write("new", to: $0.path) }
      #expect(try mounts.run("cat items/a; echo; ls -A items") == "new a d")
    }

    /// Every call that can fail in that way does, once each.
    @Test(
      "at any step, the item is old or new, the error says which, and nothing is left behind",
      arguments: [Errno.noSpace, .tooManyOpenFiles])
    func anyStep(_ errno: Errno) throws {
      let scene = try RaceScene()
      let calls: Set<SystemCall> =
        errno == .noSpace
        ? [.mkdirat, .write, .renameat, .renameat2, .copyFileRange] : [.openat, .openat2]
      var step = 0
      var wasReached = true
      while wasReached {
        try scene.put("old", "a")
        let (place, count) = (step, Counter())
        let plan = Faults.Plan { call, _ in
          calls.contains(call) && count.next() == place ? .fail(errno) : .proceed
        }
        var failure: (any Error)?
        do {
          try Faults.$plan.withValue(plan) {
            try FileCoordinator().coordinate(
              writingItemAt: scene.url("a"), until: .now + .seconds(2)
            ) {
              copy in
              try Faults.$plan.withValue(nil) { try ItemText.write("new", to: copy.path) }
            }
          }
        } catch {
          failure = error
        }
        wasReached = count.value > place
        let text = try scene.text("a")
        let comment = "step \(step): \(failure.map { "\($0)" } ?? "done")"
        #expect(text == (failure == nil ? "new" : "old"), "\(comment)")
        if let error = failure as? WormholeError, error.code != .timedOut {
          let code: WormholeError.Code = errno == .noSpace ? .noSpace : .tooManyOpenFiles
          #expect(error.code == code && error.path == scene.path("a"), "\(comment)")
        } else {
          #expect(failure == nil || failure is WormholeError, "\(comment)")
        }
        // Entries that could not be removed for lack of a descriptor are removed by the next
        // access.
        try FileCoordinator().coordinate(writingItemAt: scene.url("a")) { _ in }
        try scene.expectOnly(["a"], comment)
        step += 1
      }
      #expect(step > 5)
    }
  }
#endif
