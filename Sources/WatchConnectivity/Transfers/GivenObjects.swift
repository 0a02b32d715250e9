/// The objects of a transfer that was refused, as they were given.
// They are only handed back to whoever gave them, and never looked into or changed here.
struct GivenObjects: @unchecked Sendable {
  let objects: [String: Any]?
}
