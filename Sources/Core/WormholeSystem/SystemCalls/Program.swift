import Glibc
import WormholeShims

/// The surroundings of the running program: its arguments, environment, user and terminal.
package enum Program {
  /// The process number. The corresponding C function is `getpid`.
  package static var processID: Int32 { getpid() }

  /// The user whose rights apply when files are opened. The corresponding C function is `geteuid`.
  package static var effectiveUser: UInt32 { geteuid() }

  /// Whether the process is in a Unix group (`getegid` and `getgroups`).
  package static func isMember(ofGroup group: UInt32) -> Bool {
    if getegid() == group { return true }
    let count = getgroups(0, nil)
    guard count > 0 else { return false }
    var groups = [gid_t](repeating: 0, count: Int(count))
    let got = getgroups(count, &groups)
    return got > 0 && groups[..<Int(got)].contains(group)
  }

  /// Returns how many more files this process may open, up to a limit; the limit if unknown. The C
  /// functions are `getrlimit` and `poll`, which marks closed descriptors.
  package static func freeDescriptors(atMost limit: Int) -> Int {
    var bounds = rlimit()
    guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &bounds) == 0 else { return limit }
    let end = Int32(clamping: bounds.rlim_cur)
    var (free, next) = (0, Int32(0))
    while free < limit, next < end {
      let numbers = next..<min(end, next + 256)
      var requests = numbers.map { pollfd(fd: $0, events: 0, revents: 0) }
      guard poll(&requests, nfds_t(requests.count), 0) >= 0 else { return limit }
      free += requests.count { $0.revents & Int16(POLLNVAL) != 0 }
      next = numbers.upperBound
    }
    return min(free, limit)
  }

  /// An environment variable; repaired if it is not valid UTF-8, see `isRepaired`. The
  /// corresponding C function is `getenv`.
  package static func environment(_ name: String) -> String? {
    getenv(name).map { String(cString: $0) }
  }

  /// The whole environment as "NAME=value".
  package static var environment: [String] {
    var all: [String] = []
    var pointer = csys_environment()
    while let entry = pointer.pointee {
      all.append(String(cString: entry))
      pointer += 1
    }
    return all
  }

  /// Copies a "NAME=value" for a child; if it was repaired, byte for byte as this process has it.
  package static func copy(ofVariable variable: String) -> UnsafeMutablePointer<CChar>? {
    var pointer = csys_environment()
    while variable.isRepaired, let entry = pointer.pointee {
      if String(cString: entry).utf8.elementsEqual(variable.utf8) { return strdup(entry) }
      pointer += 1
    }
    return strdup(variable)
  }

  /// Returns the whole environment with variables, given as "NAME=value", added or replaced. If one
  /// name occurred twice, some programs would see the first value and others the last.
  package static func environment(with variables: [String]) -> [String] {
    let names = variables.map { $0.prefix { $0 != "=" } + "=" }
    return environment.filter { entry in !names.contains { entry.hasPrefix($0) } } + variables
  }

  /// The user's home directory: HOME, otherwise the entry in the user database.
  package static var homeDirectory: String? {
    if let home = environment("HOME"), !home.isEmpty { return home }
    var user = passwd()
    var found: UnsafeMutablePointer<passwd>?
    // `getpwuid` returns a buffer that another thread may overwrite.
    return withUnsafeTemporaryAllocation(of: CChar.self, capacity: 16_384) { buffer -> String? in
      guard let base = buffer.baseAddress,
        getpwuid_r(geteuid(), &user, base, buffer.count, &found) == 0, found != nil
      else { return nil }
      return user.pw_dir.map { String(cString: $0) }
    }
  }

  /// The program's arguments byte for byte, with its own name first.
  package static var rawArguments: [[UInt8]] {
    CommandLine.unsafeArgv.withMemoryRebound(
      to: UnsafeMutablePointer<CChar>?.self, capacity: Int(CommandLine.argc)
    ) { pointer in
      (0..<Int(CommandLine.argc)).map { index in
        guard let argument = pointer[index] else { return [] }
        return Array(UnsafeRawBufferPointer(start: argument, count: strlen(argument)))
      }
    }
  }

  /// Prepares Swift's runtime, before it starts, for a machine without /proc. There the runtime of
  /// a static program cannot find its own path, and aborts, unless it is given one. The runtime
  /// cannot find the arguments there either.
  ///
  /// - Parameters: Those of `main`.
  package static func prepareRuntime(
    _ count: Int32, _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>
  ) {
    csys_fill_standard_descriptors()
    guard !hasProcessTable else { return }
    setenv("SWIFT_ROOT", "/", 0)
    _swift_stdlib_overrideUnsafeArgvArgc(arguments, count)
  }

  /// Whether the file system /proc exists, in which processes and their states are found.
  package static var hasProcessTable: Bool { access("/proc/self/exe", F_OK) == 0 }

  package static func executablePath() throws(Errno) -> String {
    try linkTarget("/proc/self/exe")
  }

  /// Returns whether a descriptor is open. The corresponding C function is `fcntl` with `F_GETFD`.
  package static func isOpen(_ descriptor: Int32) -> Bool { fcntl(descriptor, F_GETFD) != -1 }

  /// Returns whether a descriptor is a terminal. The corresponding C function is `isatty`.
  package static func isTerminal(_ descriptor: Int32) -> Bool { isatty(descriptor) == 1 }

  /// Whether no other job has the terminal, such as the shell that stopped this one.
  package static func isInForeground(of terminal: Int32) -> Bool {
    [-1, getpgrp()].contains(tcgetpgrp(terminal))
  }

  /// Returns the size of a terminal; nil for an unknown dimension, or if it is not a terminal.
  package static func terminalSize(_ descriptor: Int32) -> (columns: Int?, rows: Int?) {
    let size = csys_terminal_size(descriptor)
    return (size.ws_col > 0 ? Int(size.ws_col) : nil, size.ws_row > 0 ? Int(size.ws_row) : nil)
  }

  /// Runs a function when the program exits. The corresponding C function is `atexit`.
  package static func atExit(_ body: @convention(c) () -> Void) {
    // Fails only for lack of memory (atexit(3)); then the program exits without it.
    _ = Glibc.atexit(body)
  }

  /// The name of this machine among others (gethostname(2)); empty if it has none.
  package static var hostName: String {
    var name = [CChar](repeating: 0, count: 256)
    guard gethostname(&name, name.count - 1) == 0 else { return "" }
    return String(decoding: name.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  /// Ends the program. The corresponding C function is `exit`.
  package static func exit(_ status: Int32) -> Never { Glibc.exit(status) }

  /// Whether standard output is a pipe. If it is, `waitReadable` notices when no reader is left
  /// (POLLERR, poll(2)).
  package static var outputIsPipe: Bool {
    // It fails if standard output is closed; a write reports that.
    (try? fileStatus("/proc/self/fd/1", followingLinks: true).kind == .fifo) ?? false
  }

  /// Ends the program as SIGPIPE does as soon as standard output is a pipe that no longer has a
  /// reader. For a program that waits and would not write again for a long time.
  ///
  /// - Throws: `.wouldBlock` if the process cannot have more threads.
  package static func endWithReader() throws(Errno) {
    guard outputIsPipe else { return }
    try startThread(name: "wormhole.reader") {
      // It fails if the kernel is out of memory. The next write will notice that no reader is left.
      guard (try? waitReadable([1], until: nil)) != nil else { return }
      // Fails only for numbers that are not signals (signal(2)); the main thread does not block
      // this one.
      _ = Glibc.signal(SIGPIPE, SIG_DFL)
      _ = Glibc.kill(getpid(), SIGPIPE)
    }
  }

  /// Sends a signal to a process. The corresponding C function is `kill`.
  package static func send(_ signal: Signal, to processID: Int32) throws(Errno) {
    try send(number: signal.rawValue, to: processID)
  }

  /// Sends a signal by its number, for programs that name any; see the form with a `Signal`.
  package static func send(number: Int32, to processID: Int32) throws(Errno) {
    _ = try perform(.kill) { Glibc.kill(processID, number) }
  }

  /// Writes all bytes to a descriptor that this process does not own, such as standard output.
  package static func write(_ bytes: [UInt8], to descriptor: Int32) throws(Errno) {
    try bytes.withUnsafeBufferPointer { buffer throws(Errno) in
      try write(UnsafeRawBufferPointer(buffer), to: descriptor)
    }
  }

  /// Writes a text to a descriptor that this process does not own.
  package static func write(_ text: String, to descriptor: Int32) throws(Errno) {
    try write(Array(text.utf8), to: descriptor)
  }

  static func write(_ buffer: UnsafeRawBufferPointer, to descriptor: Int32) throws(Errno) {
    var done = 0
    while done < buffer.count {
      let count = try perform(.write) {
        Glibc.write(descriptor, buffer.baseAddress.map { $0 + done }, buffer.count - done)
      }
      // A device may accept no byte and report no error (write(2)); repeated calls would never end.
      guard count > 0 else { throw .inputOutput }
      done += count
    }
  }

  /// Reads at most `maximumBytes` from a descriptor that this process does not own; empty at the
  /// end.
  package static func read(from descriptor: Int32, maximumBytes: Int) throws(Errno) -> [UInt8] {
    var failure: Errno?
    let bytes = [UInt8](unsafeUninitializedCapacity: maximumBytes) { buffer, count in
      do throws(Errno) {
        count = try perform(.read) { Glibc.read(descriptor, buffer.baseAddress, buffer.count) }
      } catch {
        failure = error
      }
    }
    if let failure { throw failure }
    return bytes
  }
}

extension String {
  /// Whether it contains U+FFFD, which replaces invalid UTF-8. Such a path may name another file than
  /// the original bytes.
  package var isRepaired: Bool { unicodeScalars.contains("\u{FFFD}") }
}
