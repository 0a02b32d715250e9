import Synchronization

/// No thread can be created, or none that the dispatch library can use.
package struct ThreadShortage: Error, CustomStringConvertible {
  package let error: Errno

  package init(error: Errno) { self.error = error }

  package var description: String { "\(reason); \(remedy)" }

  package var reason: String { "no thread can be had: \(error)" }

  package var remedy: String {
    switch error {
    case .wouldBlock:
      "raise the limit of processes and threads (ulimit -u, or pids.max of the control group)"
    case .tooManyOpenFiles, .tooManyOpenFilesInSystem: "raise the limit (ulimit -n) or close files"
    default: "a sandbox refuses clone3(2) or eventfd2(2); let it allow them"
    }
  }

  /// As many as an observation or a task needs: one each for the monitor, the timers and the
  /// dispatch library.
  private static let needed = 3
  /// A proof holds for this long, so that many observations at once cost little.
  private static let validity: Duration = .milliseconds(100)
  private static let proof = Mutex<ContinuousClock.Instant?>(nil)

  /// Proves that the dispatch library can get its threads, before a thread that others wait for
  /// calls it: it would sleep until it has them. It ends the process if it gets no event counter.
  package static func ruleOut() throws(ThreadShortage) {
    if let proof = proof.withLock({ $0 }), proof + validity > .now { return }
    let (goOn, ended) = (ThreadSemaphore(), ThreadSemaphore())
    var started = 0
    defer {
      for _ in 0..<started { goOn.signal() }
      for _ in 0..<started { _ = ended.wait(until: nil) }
    }
    do throws(Errno) {
      _ = try FileDescriptor.wakeUpCounter()
      while started < needed {
        try startThread(name: "wormhole.proof") {
          _ = goOn.wait(until: nil)
          ended.signal()
        }
        started += 1
      }
    } catch {
      throw ThreadShortage(error: error)
    }
    proof.withLock { $0 = .now }
  }
}
