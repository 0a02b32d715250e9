package import WormholeSystem

extension SharedContainer {
  /// Returns the identifiers of a kind. An entry that cannot be a name, and a directory that cannot be
  /// listed, is a fault.
  package func identifiers(of kind: NameKind, _ faults: inout NameFaults) throws -> [String] {
    try listing(at: location, &faults) { try engine.identifiers(of: kind, &$0) }
  }

  /// Returns the same as `names`; a directory that cannot be listed is a fault, too.
  package static func listed(
    _ kind: NameKind, in root: ContainerRoot, _ faults: inout NameFaults
  ) throws -> [FileDescriptor.Entry] {
    try listing(at: root.path, &faults) { try names(of: kind, in: root, &$0) }
  }

  /// Returns the entries of a kind's directory that may be names. Any other entry with a name that
  /// could be theirs is a fault.
  static func names(
    of kind: NameKind, in root: ContainerRoot, _ faults: inout NameFaults
  ) throws -> [FileDescriptor.Entry] {
    let place = root.path + "/" + kind.path
    let entries = try reporting("list the container", path: place) {
      let handle = try root.handle()
      return try ContainerRoot.entries(kind.path, at: handle.descriptor.rawValue) ?? []
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

private func listing<Name>(
  at path: String, _ faults: inout NameFaults, _ list: (inout NameFaults) throws -> [Name]
) throws -> [Name] {
  var met = NameFaults()
  let found = try faults.attempt("list the container", path: path) { try list(&met) }
  faults.add(met)
  return found ?? []
}
