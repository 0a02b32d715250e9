import Glibc
import WormholeShims

/// Identifies a thread as long as it lives.
package struct ThreadID: Equatable, Sendable {
  private let thread: pthread_t

  package static var current: ThreadID { ThreadID(thread: pthread_self()) }
}

/// Starts a thread that may block. All signals are blocked in it, so that the program's own threads
/// receive them. The corresponding C function is `pthread_create`.
///
/// - Parameter name: At most 15 bytes, which `ps -L` and debuggers show.
/// - Throws: `.wouldBlock` if the process cannot have more threads.
package func startThread(name: String, _ body: @escaping @Sendable () -> Void) throws(Errno) {
  precondition(name.utf8.count <= 15, "the kernel keeps at most 15 bytes of a thread's name")
  let box = Unmanaged.passRetained(ThreadBody(name: name, run: body))
  var all = sigset_t()
  var before = sigset_t()
  sigfillset(&all)
  // A thread inherits its creator's signal mask (pthread_sigmask(3)); the call cannot fail here.
  _ = pthread_sigmask(SIG_SETMASK, &all, &before)
  defer { _ = pthread_sigmask(SIG_SETMASK, &before, nil) }
  var thread = pthread_t()
  do throws(Errno) {
    _ = try perform(.threadCreate) { reportedByErrno(create(&thread, box.toOpaque())) }
  } catch {
    box.release()
    throw error
  }
  pthread_detach(thread)
}

private func create(_ thread: inout pthread_t, _ body: UnsafeMutableRawPointer) -> Int32 {
  pthread_create(
    &thread, nil,
    { raw in
      // A thread always gets the pointer that it was created with.
      guard let raw else { return nil }
      let body = Unmanaged<ThreadBody>.fromOpaque(raw).takeRetainedValue()
      csys_name_thread(body.name)
      body.run()
      return nil
    }, body)
}

private final class ThreadBody: Sendable {
  let name: String
  let run: @Sendable () -> Void

  init(name: String, run: @escaping @Sendable () -> Void) {
    self.name = name
    self.run = run
  }
}
