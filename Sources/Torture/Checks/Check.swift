/// A promise, and what was found against it.
struct Check {
  let promise: String
  /// What was looked at, for a promise that holds: "1234 reads".
  let extent: String
  /// In words, the first offence first; empty if the promise holds.
  let evidence: [String]

  var holds: Bool { evidence.isEmpty }
}
