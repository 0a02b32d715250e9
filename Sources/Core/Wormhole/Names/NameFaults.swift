import WormholeSystem

/// The faults of single names on a walk over all names.
///
/// A fault of one name must not hide the others: the walk keeps the fault, with its path, and goes
/// on. At its end it reports the faults. An error that every name would meet ends the walk: no
/// descriptors, no space, no answer.
package struct NameFaults: Sendable {
  /// In the order in which they were met, one for each path, or reason without a path.
  package private(set) var all: [WormholeError] = []
  private var places: Set<String> = []

  package init() {}

  package mutating func add(_ fault: WormholeError) {
    if places.insert(fault.path.isEmpty ? fault.reason : fault.path).inserted { all.append(fault) }
  }

  package mutating func add(_ others: NameFaults) {
    for fault in others.all { add(fault) }
  }

  /// Takes the step of a walk for one name.
  ///
  /// - Returns: Its result; nil for a name with a fault.
  /// - Throws: An error that other names would meet, too.
  @discardableResult
  package mutating func attempt<Result>(
    _ action: @autoclosure () -> String, path: @autoclosure () -> String,
    _ step: () throws -> Result
  ) throws -> Result? {
    do {
      return try reporting(action(), path: path(), step)
    } catch let error as WormholeError where error.isOfOneName {
      add(error)
      return nil
    }
  }
}

extension WormholeError {
  /// Whether it says nothing about other names.
  package var isOfOneName: Bool {
    errorNumber.map { Errno(rawValue: $0).isOfOneEntry }
      ?? [.damaged, .notAValue, .tooLarge, .nameCollision].contains(code)
  }
}

extension Diagnostics {
  /// Makes a walk whose caller gets only what was found: the faults of single names become events.
  package static func reportingFaults<Result>(
    _ walk: (inout NameFaults) throws -> Result
  ) rethrows -> Result {
    var faults = NameFaults()
    defer { for fault in faults.all { report(fault) } }
    return try walk(&faults)
  }
}
