/// The objects of a transfer that was refused, as they were given.
// They are only handed back to the caller that gave them, and never read or changed here.
struct GivenObjects: @unchecked Sendable {
  let objects: [String: Any]?
}
