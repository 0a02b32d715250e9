/// A promise, and the evidence against it.
struct Check {
  let promise: String
  /// The extent of the check, for a promise that holds: "1234 reads".
  let extent: String
  /// The offences in words, the first one first; empty if the promise holds.
  let evidence: [String]

  var holds: Bool { evidence.isEmpty }
}
