import Glibc

/// A shared library that is used if it is installed, and that nothing here depends on. It stays
/// loaded until the process ends. The corresponding C functions are `dlopen` and `dlsym`.
package struct DynamicLibrary: Sendable {
  // An address, which is valid in every thread.
  private let handle: UInt

  /// - Returns: nil if there is no such library.
  package init?(_ name: String) {
    guard let handle = dlopen(name, RTLD_NOW) else { return nil }
    self.handle = UInt(bitPattern: handle)
  }

  /// Returns a function of the library.
  ///
  /// - Parameter type: Its type in C (`@convention(c)`); only the caller can know that it is right.
  /// - Returns: nil if the library has no such function.
  package func function<Function>(_ name: String, as type: Function.Type) -> Function? {
    precondition(
      MemoryLayout<Function>.size == MemoryLayout<UInt>.size, "a C function is an address")
    guard let address = dlsym(UnsafeMutableRawPointer(bitPattern: handle), name) else { return nil }
    return unsafeBitCast(address, to: type)
  }
}
