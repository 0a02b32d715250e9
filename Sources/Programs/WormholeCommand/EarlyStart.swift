import WormholeSystem

/// What the linker puts among the functions that run before `main`, by its number before those of Swift's
/// runtime. It may use nothing of the runtime.
@section(".init_array.00101") @used
private let beforeTheRuntime:
  @convention(c) (Int32, UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>) -> Void = {
    Program.prepareRuntime($0, $1)
  }
