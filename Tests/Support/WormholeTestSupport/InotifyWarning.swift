import Foundation

extension String {
  /// What `doctor` printed, as it would be if the user had enough inotify instances. All processes of
  /// the user take from the same number, the other tests and their neighbours, too.
  package var withoutInotifyWarning: String {
    let alone =
      /(?s)1\. Warning: (?:The user's inotify instances|No further file can).*?\n\n1 warning(?![s,])/
    guard !contains(alone) else { return replacing(alone, with: "nothing wrong") }
    let warning = /(?s)\d+\. Warning: (?:The user's inotify instances|No further file can).*?\n\n/
    guard contains(warning) else { return self }
    var number = 0
    return replacing(warning, with: "")
      .replacing(/(?m)^\d+\. (Fault|Warning|Note):/) {
        number += 1
        return "\(number). \($0.1):"
      }
      .replacing(/1 warning, |, 1 warning\b/, with: "")
      .replacing(/(\d+) warnings/) { count in
        let others = (Int(count.1) ?? 0) - 1
        return "\(others) warning\(others == 1 ? "" : "s")"
      }
  }
}
