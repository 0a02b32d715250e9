#if DEBUG
  import Synchronization
  import Testing
  import WormholeSystem
  import WormholeTestSupport

  @testable import Wormhole
  @testable import WormholeInspection

  @Suite("A look at a container in use", .blocking)
  struct BusyContainerTests {
    private let directory: TemporaryDirectory
    private let container: SharedContainer

    init() throws {
      directory = try TemporaryDirectory()
      container = try directory.container()
      try container.value("v").replace(with: 1)
    }

    /// The entries of a process that prepares content, changes several values, and is present.
    private final class Work: Sendable {
      private let files: [SharedDescriptor]
      private let paths: [String]
      private let registration: PresenceRegistration

      init(in container: SharedContainer) throws {
        let root = container.root.path
        let transaction = "\(root)/\(Transaction.directory)/1a2b"
        for path in ["\(root)/\(NameKind.own)", "\(root)/\(Transaction.directory)", transaction] {
          _ = try tolerating([.alreadyExists], makeDirectory(path))
        }
        paths = [transaction + "/open", "\(root)/values/v/lease/prepared-1a2b"]
        files = try paths.map { path in
          let file = try FileDescriptor.open(path, [.writeOnly, .create])
          #expect(try file.tryLock(.exclusive))
          return SharedDescriptor(file)
        }
        try ItemText.write("1a2b 0 keep\n", to: "\(root)/values/v/lease/transaction")
        registration = try container.presence("p").enter()
      }

      func end(in container: SharedContainer) throws {
        registration.close()
        try removeFile("\(container.root.path)/values/v/lease/transaction")
        for path in paths { try removeFile(path) }
        try removeDirectory("\(container.root.path)/\(Transaction.directory)/1a2b")
      }
    }

    private func look(_ plan: Faults.Plan) throws -> ContainerReport {
      try Faults.$plan.withValue(plan) {
        try ContainerInspection(container, ReportScope(.names)).report
      }
    }

    @Test(
      "finds nothing foreign, left or unreadable because work ends or begins before any step of it",
      arguments: [true, false])
    func work(ends: Bool) throws {
      let work = Mutex<Work?>(try Work(in: container))
      let change: @Sendable () throws -> Void = { [container] in
        try work.withLock { work in
          try work?.end(in: container)
          work = work == nil ? try Work(in: container) : nil
        }
      }
      let counting = Faults.Plan { _, _ in .proceed }
      _ = try look(counting)
      if !ends { try change() }
      for place in 0..<counting.calls {
        let report = try look(.acting(before: place, change))
        let found = report.foreignEntries.map(\.path) + report.leftovers.map(\.path)
        #expect(found == [] && report.failures.isEmpty, "\(place): \(report.failures)")
        try change()
      }
    }
  }
#endif
