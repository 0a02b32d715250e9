import FoundationEssentials
import Wormhole
import WormholeInspection

// The parts of a report as the cells of tables for people.

extension Int64 {
  /// `106 B`, `12 kB`.
  var sizeText: String {
    self < 10_000
      ? "\(self) B" : self < 10_000_000 ? "\(self / 1_000) kB" : "\(self / 1_000_000) MB"
  }
}

extension Date {
  /// As ISO 8601, without fractions of a second.
  var secondsText: String { ISO8601.text(wholeSeconds) ?? "-" }
}

extension PresenceMember {
  var sinceText: String { "\(description), since \(since.secondsText)" }
}

extension ContainerReport.NamedQueue {
  /// `3 (246 B, oldest …), 1 taken`.
  var waitingText: String {
    var text = "\(waiting)"
    if let oldest { text += " (\(waitingBytes.sizeText), oldest \(oldest.secondsText))" }
    if let nextDue {
      text += ", \(delayed) of them delayed, the next due \(nextDue.secondsText)"
    }
    if taken > 0 { text += ", \(taken) taken" }
    if failed > 0 { text += ", \(failed) failed" }
    return text
  }

  var consumersText: String {
    let consumers = ([consumer].compactMap(\.self) + workers).map(\.sinceText)
    return consumers.isEmpty ? "nobody" : consumers.joined(separator: ", ")
  }
}

extension ContainerReport.NamedLog {
  /// `3 (246 B, the last 3 of …)`.
  var messagesText: String {
    guard let newest else { return "\(messages)" }
    return "\(messages) (\(bytes.sizeText), the last \(last ?? 0) of \(newest.secondsText))"
  }

  var subscribersText: String {
    let subscribers = subscribers.map { reading in
      let (name, behind) = (reading.subscriber.name, reading.subscriber.behind)
      let process = reading.process.map { ", " + $0.sinceText } ?? ""
      return "\(name) (\(behind == 0 ? "all" : "all but \(behind)")\(process))"
    }
    return subscribers.isEmpty ? "nobody" : subscribers.joined(separator: ", ")
  }
}

extension Duration {
  /// `0.5 s`, `8 s`.
  var shortText: String {
    let seconds = self / .seconds(1)
    return seconds == seconds.rounded() ? "\(Int(seconds)) s" : "\(seconds) s"
  }
}
