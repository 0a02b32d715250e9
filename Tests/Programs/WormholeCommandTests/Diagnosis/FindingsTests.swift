import Testing
import WormholePropertyLists
import WormholeTestSupport

@testable import Wormhole
@testable import WormholeCommand
@testable import WormholeInspection
@testable import WormholeSystem

/// Findings that files alone cannot cause: limits nearly used up, other users and machines.
@Suite("A report's figures become findings with a command", .blocking)
struct FindingsTests {
  private func report(_ change: (inout ContainerReport) -> Void) -> ContainerReport {
    var report = ContainerReport(path: "/c")
    report.watches.maximumWatches = 1_000
    report.watches.maximumInstances = 128
    change(&report)
    return report
  }

  private func findings(_ change: (inout ContainerReport) -> Void) -> [Finding] {
    Findings.of(report(change), options: "--container /c")
  }

  @Test("Limits are reported from nine tenths on, with twice the value to set")
  func limits() {
    #expect(findings { _ in }.isEmpty)
    #expect(findings { $0.watches.watches = 899 }.isEmpty)
    #expect(
      findings { $0.watches.watches = 900 }.map(\.command)
        == ["sysctl fs.inotify.max_user_watches=2000"])
    #expect(
      findings { $0.watches.instances = 128 }.map(\.command)
        == ["sysctl fs.inotify.max_user_instances=256"])
    let names = findings { report in
      report.names.values = (0..<950).map { .init(identifier: "\($0)", path: "/c/values/\($0)") }
    }
    #expect(names.map(\.command) == ["sysctl fs.inotify.max_user_watches=2000"])
    #expect(names.first?.what.contains("950 names") == true)
  }

  @Test(
    "An obstacle is a fault, and comes first; a leftover is a note")
  func levels() throws {
    let found = findings { report in
      report.leftovers = [.init(kind: .brokenLease, path: "/c/x", owner: nil)]
      report.networkFileSystem = "nfs"
      report.foreignEntries = [
        .init(path: "/c/a", isInTheWay: false), .init(path: "/c/b", isInTheWay: true),
      ]
    }
    #expect(found.map(\.level) == [.fault, .warning, .warning, .note])
    #expect(found.map(\.path) == ["/c/b", "/c/a", "/c", "/c/x"])
    #expect(found.summary() == "1 fault, 2 warnings, 1 note")
    #expect(found.summary(of: [.note]) == "1 note")
    #expect([Finding]().summary() == nil)
    for finding in found {
      #expect(try PropertyListValue(json: finding)["level"]?.stringValue == "\(finding.level)")
    }
  }

  @Test("A network file system is reported")
  func network() {
    let found = findings { $0.networkFileSystem = "nfs" }
    #expect(found.map(\.kind) == [.networkFileSystem])
    #expect(found.first?.what.contains("nfs") == true)
  }

  @Test("Another user's file is reported with the command that gives it back")
  func owner() {
    let found = findings { report in
      report.looseEntries = [
        .init(path: "/c/it's", owner: 4711, mode: "600", isForeign: true)
      ]
    }
    #expect(found.map(\.kind) == [.foreignOwner])
    #expect(found.first?.command?.hasSuffix(#"'/c/it'\''s'"#) == true)
  }

  @Test("A holder that takes too long is reported without a command")
  func overdue() {
    let holder = LeaseHolder(
      processID: 4711, program: "daemon", state: .running, held: .seconds(3))
    let found = findings { report in
      report.leases = [
        .init(
          identifier: "seats", title: nil, isOwn: false, path: "/c/values/seats/value.plist",
          holder: holder, term: .seconds(2), overdue: .termPassed)
      ]
    }
    #expect(found.map(\.kind) == [.overdueLease])
    #expect(
      found.first?.what.contains("held for 3.0 s by process 4711 (daemon), which is running")
        == true)
    #expect(found.first?.command == nil)
  }
}
