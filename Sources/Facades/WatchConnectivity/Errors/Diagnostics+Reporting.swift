package import Wormhole

extension Diagnostics {
  /// Runs a call whose error no caller can get: the error is an event instead.
  ///
  /// - Returns: the result; after an error the other one.
  package static func reporting<Result>(
    otherwise: Result, _ body: () throws -> Result
  ) -> Result {
    do {
      return try body()
    } catch {
      report(error)
      return otherwise
    }
  }

  /// Runs a call whose error no caller can get; see the other form.
  package static func reporting(_ body: () throws -> Void) { reporting(otherwise: (), body) }
}
