/// The descriptors of the change monitor: its inotify instance, and the counter that wakes its thread.
final class MonitorDescriptors: Sendable {
  let events: SharedDescriptor?
  let wakeUp: SharedDescriptor?
  let failure: Errno?
  /// The descriptors that the thread waits for; the events come first.
  let sources: [Int32]

  /// - Parameter counter: the one that the thread may be waiting for.
  init(keeping counter: SharedDescriptor? = nil) {
    var failure: Errno?
    do throws(Errno) {
      events = SharedDescriptor(try FileDescriptor.eventQueue())
    } catch {
      events = nil
      failure = error
    }
    do throws(Errno) {
      if let counter {
        wakeUp = counter
      } else {
        wakeUp = SharedDescriptor(try FileDescriptor.wakeUpCounter())
      }
    } catch {
      wakeUp = nil
      failure = error
    }
    self.failure = failure
    sources = [events, wakeUp].compactMap { $0?.descriptor.rawValue }
  }
}
