import Synchronization
import WormholeSystem

/// A result from another thread, once: the first that it puts here stays.
final class OneResult<Value: Sendable>: Sendable {
  private let counter: SharedDescriptor
  private let result = Mutex<Value?>(nil)

  init() throws(Errno) { counter = SharedDescriptor(try FileDescriptor.wakeUpCounter()) }

  /// Readable once there is a result.
  var descriptor: Int32 { counter.descriptor.rawValue }

  func put(_ value: Value) {
    result.withLock { $0 = $0 ?? value }
    // Only a counter at its maximum cannot be raised, and that one is already readable.
    try? counter.descriptor.raiseCounter()
  }

  func look() -> Value? { result.withLock { $0 } }
}
