import WormholeShims
package import WormholeSystem

/// Sets an extended attribute of a path, without following a symbolic link. The corresponding C
/// function is `lsetxattr`.
package func setAttribute(
  _ name: FileName, _ value: [UInt8], of path: some PathText
) throws(Errno) {
  _ = try perform(.lsetxattr) {
    path.withCPath { path in
      name.withCPath { name in
        value.withUnsafeBytes {
          csys_set_path_attribute(path, name, $0.baseAddress, $0.count)
        }
      }
    }
  }
}

extension FileDescriptor {
  /// Returns the names of the file's extended attributes; access control lists are among them. The
  /// corresponding C function is `flistxattr`.
  ///
  /// - Throws: `.unsupported` if the file system has no extended attributes.
  /// - Complexity: One call, of 1 KiB on the stack, unless the names are longer.
  package func attributeNames() throws(Errno) -> [FileName] {
    let list = try Self.filling(call: .flistxattr) { buffer, size in
      csys_list_attributes(rawValue, buffer, size)
    }
    return list.split(separator: 0).map { FileName(bytes: Array($0)) }
  }

  /// Returns the value of an extended attribute. The corresponding C function is `fgetxattr`.
  ///
  /// - Throws: `.noSuchAttribute` if there is none of this name.
  package func attribute(_ name: FileName) throws(Errno) -> [UInt8] {
    try Self.filling(call: .fgetxattr) { buffer, size in
      name.withCPath { csys_get_attribute(rawValue, $0, buffer, size) }
    }
  }

  /// Sets an extended attribute. The corresponding C function is `fsetxattr`.
  package func setAttribute(_ name: FileName, _ value: [UInt8]) throws(Errno) {
    _ = try perform(.fsetxattr) {
      name.withCPath { name in
        value.withUnsafeBytes { csys_set_attribute(rawValue, name, $0.baseAddress, $0.count) }
      }
    }
  }

  /// Removes an extended attribute. The corresponding C function is `fremovexattr`.
  package func removeAttribute(_ name: FileName) throws(Errno) {
    _ = try perform(.fremovexattr) { name.withCPath { csys_remove_attribute(rawValue, $0) } }
  }

  // Lists and values are at most 64 KiB (xattr(7)); if one grew meanwhile, the call is repeated.
  private static func filling(
    call: SystemCall, _ body: (UnsafeMutableRawPointer?, Int) -> Int
  ) throws(Errno) -> [UInt8] {
    for capacity in [1 << 10, 1 << 16] {
      do throws(Errno) {
        return try withTemporaryBytes(capacity) { buffer throws(Errno) in
          Array(buffer[..<(try perform(call) { body(buffer.baseAddress, capacity) })])
        }
      } catch {
        guard error == .rangeTooSmall, capacity < 1 << 16 else { throw error }
      }
    }
    return []
  }
}
