package import WormholeSystem

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

extension SharedContainer {
  /// Returns the identifiers of a kind. An entry that cannot be a name, and a directory that cannot be
  /// listed, is a fault.
  package func identifiers(of kind: NameKind, _ faults: inout NameFaults) throws -> [String] {
    var met = NameFaults()
    let found = try faults.attempt("list the container", path: location) {
      try engine.identifiers(of: kind, &met)
    }
    faults.add(met)
    return found ?? []
  }

  /// Returns the same as `names`; a directory that cannot be listed is a fault, too.
  package static func listed(
    _ kind: NameKind, in root: ContainerRoot, _ faults: inout NameFaults
  ) throws -> [FileDescriptor.Entry] {
    var met = NameFaults()
    let found = try faults.attempt("list the container", path: root.path) {
      try names(of: kind, in: root, &met)
    }
    faults.add(met)
    return found ?? []
  }

  /// Returns the entries of a kind's directory that may be names. Any other entry with a name that
  /// could be theirs is a fault.
  static func names(
    of kind: NameKind, in root: ContainerRoot, _ faults: inout NameFaults
  ) throws -> [FileDescriptor.Entry] {
    let place = root.path + "/" + kind.path
    let entries = try reporting("list the container", path: place) {
      let handle = try root.handle()
      return try Self.entries(kind.path, at: handle.descriptor.rawValue) ?? []
    }
    return entries.filter { entry in
      guard EncodedName.decode(entry.name.bytes) != .foreign else { return false }
      guard entry.isDirectory == false else { return true }
      faults.add(
        WormholeError(
          .notAValue, "use the name", path: place + "/" + entry.name.text,
          reason: "it is not a directory", remedy: "move it away"))
      return false
    }
  }

  /// Returns the identifier of an entry in the directory of a kind; nil for a foreign one, and for one
  /// with a fault.
  package static func identifier(
    of name: FileName, _ kind: NameKind, in root: ContainerRoot, _ faults: inout NameFaults
  ) throws -> String? {
    switch EncodedName.decode(name.bytes) {
    case .identifier(let identifier): return identifier
    case .foreign: return nil
    case .long:
      let path = kind.path + "/" + name.text
      let identifier = try faults.attempt("read the identifier", path: root.path + "/" + path) {
        let handle = try root.handle()
        return try NamedDirectory.longIdentifier(path, at: handle.descriptor.rawValue)
      }
      // Without the file it is just being created, or removed.
      return (identifier ?? nil).flatMap { EncodedName($0).component == name.text ? $0 : nil }
    }
  }
}
