/// The directory that has the package's manifest, as it was when the tests were built.
package enum Checkout {
  package static let path = #filePath.split(separator: "/", omittingEmptySubsequences: false)
    .dropLast(4).joined(separator: "/")

  /// Returns the path of a file below that directory.
  package static func path(_ relative: String) -> String { path + "/" + relative }
}
