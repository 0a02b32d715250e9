import Glibc

/// A shared library that is used where it is installed, and that nothing here depends on. The
/// corresponding C functions are `dlopen` and `dlsym`; it stays loaded until the process ends.
package struct DynamicLibrary: Sendable {
  // An address, which is as good in one thread as in another.
  private let handle: UInt

  /// - Returns: nil when there is no such library.
  package init?(_ name: String) {
    guard let handle = dlopen(name, RTLD_NOW) else { return nil }
    self.handle = UInt(bitPattern: handle)
  }

  /// A function of the library.
  ///
  /// - Parameter type: what it is in C (`@convention(c)`); only the caller can know that it is right.
  /// - Returns: nil when the library has no such function.
  package func function<Function>(_ name: String, as type: Function.Type) -> Function? {
    precondition(
      MemoryLayout<Function>.size == MemoryLayout<UInt>.size, "a C function is an address")
    guard let address = dlsym(UnsafeMutableRawPointer(bitPattern: handle), name) else { return nil }
    return unsafeBitCast(address, to: type)
  }
}
