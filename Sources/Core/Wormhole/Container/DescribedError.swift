/// An error that says what failed, on which file, why, which process blocks it, and what to do.
///
/// Each module has its own error type, because each has its own codes; all of them say the same
/// things about a failure.
///
/// ```swift
/// do {
///   try await container.value("seats").replace(with: [7, 8])
/// } catch let error as any DescribedError {
///   print("cannot \(error.action): \(error.reason)")
///   if let holder = error.holder { print("process \(holder.processID ?? 0) is in the way") }
///   if let remedy = error.remedy { print(remedy) }
/// }
/// ```
public protocol DescribedError: Error, Sendable, CustomStringConvertible {
  /// The kinds of failure.
  associatedtype Code: ErrorCode
  /// The kind of failure, for programs.
  var code: Code { get }
  /// The parts of the sentence.
  var failure: FailureDescription { get }
}

extension ErrorCode {
  /// Lets a `catch` name a code, of any error that has codes of this type.
  ///
  /// ```swift
  /// do {
  ///   try await container.value("seats").update(until: .now) { $0 = [7] }
  /// } catch AppGroupError.Code.timedOut {
  ///   print("later, please")
  /// }
  /// ```
  ///
  /// - Parameters:
  ///   - code: The code after `catch`.
  ///   - error: The error that was thrown.
  public static func ~= (code: Self, error: any Error) -> Bool {
    (error as? any DescribedError)?.code as? Self == code
  }
}

extension DescribedError {
  /// The attempted action, as a verb with its object: "read value \"tickets\"".
  public var action: String { failure.action }
  /// The file or directory of the action; empty if there is none.
  public var path: String { failure.path }
  /// The reason for the failure.
  public var reason: String { failure.reason }
  /// What the user can do about it, if anything.
  public var remedy: String? { failure.remedy }
  /// The kernel's error number, if a system call failed.
  public var errorNumber: Int32? { failure.errorNumber }
  /// The process in the way, or the process that took over.
  public var holder: LeaseHolder? { failure.holder }
  /// One sentence: "cannot ACTION (PATH): REASON; REMEDY".
  public var description: String { failure.description }
}

/// The parts of the sentence of a `DescribedError`, which that error offers as its own properties.
///
/// ```swift
/// do {
///   try await container.value("seats").replace(with: [7, 8])
/// } catch let error as AppGroupError {
///   log(error.failure.description)             // one sentence for people
/// }
/// func log(_ sentence: String) { print(sentence) }
/// ```
public struct FailureDescription: Sendable {
  package var action: String
  package var path: String
  package var reason: String
  package var remedy: String?
  package var errorNumber: Int32?
  package var holder: LeaseHolder?

  package init(
    _ action: String, path: String = "", reason: String, remedy: String? = nil,
    errorNumber: Int32? = nil, holder: LeaseHolder? = nil
  ) {
    self.action = action
    self.path = path
    self.reason = reason
    self.remedy = remedy
    self.errorNumber = errorNumber
    self.holder = holder
  }
}

extension FailureDescription: CustomStringConvertible {
  /// The sentence of the error.
  public var description: String {
    let place = path.isEmpty ? "" : " (\(path))"
    let advice = remedy.map { "; \($0)" } ?? ""
    return "cannot \(action)\(place): \(reason)\(advice)"
  }
}
