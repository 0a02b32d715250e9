import Glibc

/// A counting semaphore for threads. On Linux, Dispatch's waits end by the time of day, which can
/// be set back; these end by a clock that cannot. The C functions are those of `pthread_cond_t`.
///
/// Its `Sendable` is unchecked because of the pointers: the count is read and changed only with the mutex
/// locked, and nothing else is written after `init`.
final class ThreadSemaphore: @unchecked Sendable {
  private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
  private let condition = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)
  private var count = 0

  /// How long to wait before a look at the deadline, because that clock stops while the machine is
  /// asleep. A wait of days, which is mostly one without an end, wakes the processor rarely.
  private static func slice(of left: Duration) -> Duration {
    min(left, left > .seconds(86_400) ? .seconds(3_600) : .seconds(10))
  }

  init() {
    var attributes = pthread_condattr_t()
    pthread_condattr_init(&attributes)
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
    pthread_mutex_init(mutex, nil)
    pthread_cond_init(condition, &attributes)
    pthread_condattr_destroy(&attributes)
  }

  deinit {
    pthread_cond_destroy(condition)
    pthread_mutex_destroy(mutex)
    condition.deallocate()
    mutex.deallocate()
  }

  /// Wakes one waiter, or the next.
  func signal() {
    pthread_mutex_lock(mutex)
    count += 1
    pthread_cond_signal(condition)
    pthread_mutex_unlock(mutex)
  }

  /// - Returns: false if the deadline has passed first.
  func wait(until deadline: ContinuousClock.Instant?) -> Bool {
    pthread_mutex_lock(mutex)
    defer { pthread_mutex_unlock(mutex) }
    while count == 0 {
      guard let deadline else {
        pthread_cond_wait(condition, mutex)
        continue
      }
      let left = ContinuousClock.now.duration(to: deadline)
      guard left > .zero else { return false }
      var end = timespec()
      clock_gettime(CLOCK_MONOTONIC, &end)
      let (seconds, attoseconds) = Self.slice(of: left).components
      end.tv_sec += Int(seconds)
      end.tv_nsec += Int(attoseconds / 1_000_000_000)
      if end.tv_nsec >= 1_000_000_000 {
        (end.tv_sec, end.tv_nsec) = (end.tv_sec + 1, end.tv_nsec - 1_000_000_000)
      }
      pthread_cond_timedwait(condition, mutex, &end)
    }
    count -= 1
    return true
  }
}
