import Foundation
import Testing
import WormholePropertyLists
import WormholeTestSupport

@testable import Wormhole
@testable import WormholeCommand
@testable import WormholeInspection

@Suite("What is printed as JSON encodes itself", .blocking) struct JSONEncodingTests {
  private struct Fact: Encodable {
    var date = Date(timeIntervalSinceReferenceDate: 0.25)
    var time = Duration.milliseconds(1_500)
    var number = UInt64.max
    var missing: String?
    var content: PropertyListValue = [.date(Date(timeIntervalSinceReferenceDate: 0.25)), 1.0]
    var parts: [[String: Int]] = [["a": 1], [:]]
  }

  @Test("Dates are strings, durations seconds, what is missing is left out, and content stays")
  func forms() throws {
    let rest =
      #""number":18446744073709551615,"parts":[{"a":1},{}],"time":1.5}"#
    let content = #"{"content":[{"$date":"2001-01-01T00:00:00.25Z"},1.0],"#
    #expect(
      try JSONWriter.string(Fact()) == content + #""date":"2001-01-01T00:00:00.25Z","# + rest)
    #expect(
      try JSONWriter.string(Fact(), .wholeSeconds)
        == content + #""date":"2001-01-01T00:00:00Z","# + rest)
    let object: JSONObject = [
      "a": 1, "b": nil as Int?, "c": [Fact().time], "dMilliseconds": Fact().time,
    ]
    #expect(try JSONWriter.string(object) == #"{"a":1,"c":[1.5],"dMilliseconds":1500.0}"#)
  }

  @Test("A report has one encoding, for the command and for any other encoder")
  func report() throws {
    var report = ContainerReport(path: "/c")
    report.leases = [
      .init(
        identifier: "seats", title: nil, isOwn: false, path: "/c/values/seats/value.plist",
        holder: LeaseHolder(processID: 7, program: "p", state: .running, held: .seconds(3)),
        term: nil, overdue: nil)
    ]
    report.foreignEntries = [.init(path: "/c/x", isInTheWay: true)]
    var log = ContainerReport.NamedLog(name: "l", path: "/c/logs/l")
    log.problem = WormholeError(.damaged, "read", path: "/c/logs/l", reason: "it is short")
    log.subscribers = [.init(subscriber: .init(name: "s", next: 2, behind: 0), process: nil)]
    report.names.logs = [log]
    let value = try PropertyListValue(json: report)
    #expect(
      value["leases"]?[0] == [
        "heldSeconds": 3.0, "identifier": "seats", "isOwn": false,
        "path": "/c/values/seats/value.plist", "process": 7, "program": "p", "state": "running",
      ])
    #expect(value["foreignEntries"] == ["/c/x"])
    let found = value["names"]?["logs"]?[0]
    #expect(found?["problem"] == "cannot read (/c/logs/l): it is short")
    #expect(found?["subscribers"] == [["behind": 0, "name": "s", "next": 2]])
    let other = try JSONSerialization.jsonObject(with: JSONEncoder().encode(report))
    #expect(
      Set((other as? [String: Any] ?? [:]).keys) == Set(value.dictionaryValue?.keys ?? [:].keys))
  }
}
