public import Wormhole

/// The kit could not do what a test asked for: usually, an awaited event did not happen.
///
/// ```swift
/// do {
///   try await scene.session(.phone).waitUntil(\.isReachable, until: .now + .milliseconds(50))
/// } catch let error as TestingError where error.code == .timedOut {
///   print(error)
/// }
/// ```
public struct TestingError: DescribedError {
  /// The kind of failure.
  ///
  /// ```swift
  /// do {
  ///   try await scene.end()
  /// } catch let error as TestingError where error.code == .directory {
  ///   print("the scene's directory is left: \(error)")
  /// }
  /// ```
  public struct Code: ErrorCode {
    /// Its name.
    public let rawValue: String
    /// Creates a code from its name.
    public init(rawValue: String) { self.rawValue = rawValue }

    /// The deadline passed.
    public static let timedOut = Self("timedOut")
    /// The process that the test drives has ended.
    public static let ended = Self("ended")
    /// The process could not be started or reached.
    public static let process = Self("process")
    /// A test's directory could not be made or removed.
    public static let directory = Self("directory")
  }

  /// The kind of failure.
  public let code: Code
  /// The parts of the sentence.
  public let failure: FailureDescription

  init(_ code: Code, _ action: String, reason: String, remedy: String? = nil) {
    self.code = code
    failure = FailureDescription(action, reason: reason, remedy: remedy)
  }
}
