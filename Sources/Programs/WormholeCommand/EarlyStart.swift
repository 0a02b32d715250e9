import WormholeSystem

/// A function that the linker puts among those that run before `main`; its number puts it before
/// those of Swift's runtime. It may use nothing of the runtime.
@section(".init_array.00101") @used
private let beforeTheRuntime:
  @convention(c) (Int32, UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>) -> Void = {
    Program.prepareRuntime($0, $1)
  }
