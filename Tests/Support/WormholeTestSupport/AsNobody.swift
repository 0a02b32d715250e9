import WormholeSystem

// The kernel keeps the file permissions of a thread apart from those of its process (setfsuid(2)).
@_silgen_name("setfsuid") private func setFileSystemUser(_ user: UInt32) -> Int32

/// Runs a closure with the file permissions of the user `nobody`, if this is the administrator.
package func asNobody<Result: Sendable>(_ body: () throws -> Result) throws -> Result {
  guard Program.effectiveUser == 0 else { return try body() }
  _ = setFileSystemUser(65_534)
  defer { _ = setFileSystemUser(0) }
  return try body()
}
