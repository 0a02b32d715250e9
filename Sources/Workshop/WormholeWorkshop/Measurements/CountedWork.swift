import Glibc
import WormholeShims
import WormholeSystem

/// What one operation does in its process, counted by instruction: the same on a busy machine.
///
/// The process that counts starts another one and traces it (ptrace(2)); both use this type. Other
/// threads of the traced process are not counted.
package struct CountedWork {
  /// The instructions of the program, not of the kernel.
  package let instructions: Int
  /// The calls of malloc(3).
  package let allocations: Int

  /// Repeats an operation that the process that started this one counts.
  ///
  /// - Throws: The error of the operation, or EPERM if this process is already traced.
  package static func offer(times: Int, _ operation: () throws -> Void) throws {
    guard ctrace_be_traced() != -1 else { throw Errno(rawValue: errno) }
    // The work between these two is the work of a mark.
    ctrace_stop_at_mark()
    ctrace_stop_at_mark()
    for _ in 0..<times {
      try operation()
      ctrace_stop_at_mark()
    }
  }

  /// The address of malloc(3) in this process, which the process that counts has to know.
  package static var allocator: Int {
    // Only a program without malloc(3) has none.
    Int(bitPattern: dlsym(nil, "malloc"))
  }

  /// Counts what another process offers, until it ends.
  ///
  /// - Parameters:
  ///   - process: Started by this thread, and about to call `offer` with the same number of `times`.
  ///   - allocator: Its `allocator`.
  /// - Returns: The least work of the repetitions, because one of them may wait for the disk, or look
  ///   whether a directory is still the same.
  package init(ofProcess process: Int32, times: Int, allocator: Int) throws {
    guard ctrace_await(process) != -1 else { throw Errno(rawValue: errno) }
    let vdso = ctrace_vdso(process)
    func work() throws -> ctrace_work {
      var work = ctrace_work()
      guard ctrace_continue(process, UInt64(allocator), vdso, &work) != -1 else {
        throw Errno(rawValue: errno)
      }
      return work
    }
    let mark = try work()
    let works = try (0..<times).map { _ in try work() }
    // It now ends, and has no more marks.
    while ctrace_continue(process, 0, vdso, nil) != -1 {}
    instructions = Int((works.map(\.instructions).min() ?? 0) - mark.instructions)
    allocations = Int(works.map(\.visits).min() ?? 0)
  }
}
