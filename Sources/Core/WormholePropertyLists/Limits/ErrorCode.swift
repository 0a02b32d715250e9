/// The kind of a failure, for programs: one of the static members of its type.
///
/// It is a structure, not an enumeration, so a release may add a code without breaking a program's
/// `switch`.
///
/// ```swift
/// do {
///   try PropertyListGuard.check(Data(contentsOf: file))
/// } catch let error as PropertyListError {
///   switch error.code {
///   case .tooManyBytes, .tooDeep: print("the file is too large")
///   default: print(error)
///   }
/// }
/// ```
public protocol ErrorCode: RawRepresentable, Hashable, Sendable, CustomStringConvertible
where RawValue == String {
  /// Creates a code from its name.
  init(rawValue: String)
}

extension ErrorCode {
  package init(_ name: String) { self.init(rawValue: name) }

  /// Its name.
  public var description: String { rawValue }
}
