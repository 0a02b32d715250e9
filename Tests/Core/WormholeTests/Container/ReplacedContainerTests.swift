#if DEBUG
  import Synchronization
  import Testing
  import WormholeSystem
  import WormholeTestSupport

  @testable import Wormhole

  @Suite("A directory in a container that is replaced during a call", .blocking)
  struct ReplacedContainerTests {
    let directory: TemporaryDirectory
    let other: TemporaryDirectory
    let container: SharedContainer

    init() throws {
      directory = try TemporaryDirectory()
      other = try TemporaryDirectory()
      container = try directory.container()
      for place in [directory.path, other.path] {
        try makeDirectory(place + "/own")
        try makeDirectory(place + "/own/inbox")
        try makeDirectory(place + "/own/inbox/file")
      }
    }

    /// Runs a call; before the first call of the kernel another thread finds that the container was
    /// replaced, and the program opens a directory of its own.
    private func replacing(_ body: (ContainerDirectory) throws -> Void) throws {
      let opened = Mutex<SharedDescriptor?>(nil)
      let (container, other) = (container, other)
      let plan = Faults.Plan { call, index in
        guard index == 0 else { return .proceed }
        Faults.$plan.withValue(nil) {
          let path = container.root.path
          #expect(throws: Never.self) {
            let here = Directory.current
            try rename(path, at: here, to: other.path + "/old", at: here)
            try makeDirectory(path)
            _ = try container.root.rechecked(container.root.lastHandle)
            let own = SharedDescriptor(
              try FileDescriptor.open(other.path, [.readOnly, .directory]))
            opened.withLock { $0 = own }
          }
        }
        return .proceed
      }
      let place = ContainerDirectory("own/inbox", in: container)
      try Faults.$plan.withValue(plan) { try body(place) }
      #expect(opened.withLock { $0 } != nil)
    }

    // The number of the old directory's descriptor is that of the program's own then.
    @Test("removes nothing in a directory that the program has opened meanwhile")
    func removal() throws {
      try replacing { try $0.remove("file") }
      #expect(try exists(other.path + "/own/inbox/file", at: Directory.current))
    }
  }
#endif
