import Dispatch
import WormholeSystem

extension DispatchQueue {
  /// Runs a closure after a pause.
  func after(_ pause: Duration, _ body: @escaping @Sendable () -> Void) {
    asyncAfter(deadline: .now() + pause.dispatchInterval, execute: body)
  }
}
