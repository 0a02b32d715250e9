public import Wormhole

/// The codes of what the kit could not do for a test.
///
/// ```swift
/// do {
///   try await scene.end()
/// } catch let error as WormholeError where error.code == .directory {
///   print("the scene's directory is left: \(error)")
/// }
/// ```
extension WormholeError.Code {
  /// The process that the test drives has ended.
  public static let ended = Self("ended")
  /// The process could not be started or reached.
  public static let process = Self("process")
  /// A test's directory could not be made or removed.
  public static let directory = Self("directory")
}
