import Wormhole
import WormholePropertyLists
import WormholeSystem
import WormholeTerminals
import WormholeToolkit

/// The process around a command; tests pass their own.
struct CommandEnvironment: Sendable {
  let variable: @Sendable (String) -> String?
  /// The bytes from standard input so far; empty at its end. A terminal gives a line at once.
  var readInput: @Sendable () throws -> [UInt8] = { [] }
  let writeStandardOutput: @Sendable ([UInt8]) throws -> Void
  /// For people; a failure to write there cannot be reported anywhere.
  let writeStandardError: @Sendable ([UInt8]) -> Void
  /// From now on the program ends when no process reads standard output any longer.
  var endWithReader: @Sendable () -> Void = {}
  /// The width of sentences for people.
  var columns = 80
  /// The height of the terminal that is standard output; nil if it is not one.
  var rows: Int?
  /// Whether standard output is a terminal.
  var isTerminal = false
  var isInputTerminal = false
  /// The width of standard error if it is a terminal.
  var errorColumns: Int?
  var readiness: Readiness?
  /// Ends the process when a file system does not answer; nil in the process of a test.
  var answers: AnswerWatch?

  /// The width of tables; nil if a program reads them: then each row is one line, however long.
  var tableColumns: Int? { isTerminal ? columns : nil }

  var temporaryDirectory: String { variable("TMPDIR").flatMap { $0.isEmpty ? nil : $0 } ?? "/tmp" }

  /// Whether a shell would find a program with this name.
  func hasProgram(_ name: String) throws -> Bool {
    guard !name.contains("/"), !ShellPattern.isMeant(by: name) else { return false }
    return try (variable("PATH") ?? "").split(separator: ":").contains {
      try exists("\($0)/\(name)", at: Directory.current)
    }
  }

  /// Runs the user's program, which may take any time.
  func withoutTimeLimit<Result>(_ body: () throws -> Result) rethrows -> Result {
    try answers?.suspended(body) ?? body()
  }

  /// Looks at perhaps a million files, and changes nothing: the program may end at its deadline.
  func looking<Result>(_ body: () throws -> Result) rethrows -> Result {
    try answers?.looking(body) ?? body()
  }
}

extension CommandEnvironment {
  /// Writes to standard output.
  ///
  /// - Throws: `ExitStatus.brokenPipe`, or a `CommandError` for a full disk and the like.
  func print(_ bytes: [UInt8]) throws {
    do {
      try writeStandardOutput(bytes)
    } catch let error as Errno where error == .brokenPipe {
      throw ExitStatus.brokenPipe
    } catch {
      throw CommandError(cannot: "write to standard output", because: error)
    }
  }

  /// The least time that a reader of standard output has, even if the deadline comes earlier: a
  /// program that was just started may take that long to begin.
  private static let readerTime: Duration = .seconds(3)

  /// Writes to standard output. A signal, or the deadline, ends a wait for the reader.
  func print(
    _ bytes: [UInt8], _ interruption: Interruption, until deadline: ContinuousClock.Instant
  ) throws {
    let end = max(deadline, .now + Self.readerTime)
    do {
      let written: Void? = try interruption.wait(until: end, forOutput: { try print(bytes) })
      if written == nil { throw interruption.endStatus }
    } catch let status as ExitStatus where status == .deadline {
      throw CommandError(
        cannot: "write to standard output", because: "the reader is too slow", status: status)
    }
  }

  func print(_ text: String) throws { try print(Array(text.utf8)) }

  func print(line: String) throws { try print(line + "\n") }

  /// - Parameter fact: what was done before, for the error.
  func print(line: String, after fact: @autoclosure () -> String) throws {
    do {
      try print(line: line)
    } catch let error as CommandError {
      throw error.adding(fact())
    }
  }

  func print(json value: some Encodable, _ dates: JSONDates = .exact) throws {
    try print(line: JSONWriter.string(value, dates))
  }

  /// Prints a line: of JSON with `--json`, otherwise of text.
  func print(
    _ arguments: ParsedArguments, json: @autoclosure () -> JSONObject,
    text: @autoclosure () throws -> String
  ) throws {
    try print(line: arguments.has("json") ? JSONWriter.string(json()) : text())
  }

  /// Prints items, with `--json` a line for each, otherwise a table, and then what could not be looked
  /// at; without an item nothing, and the status is `no`, as with grep(1).
  func print<Item: Listed>(
    _ items: [Item], _ arguments: ParsedArguments, _ faults: NameFaults = NameFaults()
  ) throws {
    try printList(arguments, faults) { try items.forEach($0) }
  }

  /// The same for items that come one by one, because there may be a million of them.
  func printList<Item: Listed>(
    _ arguments: ParsedArguments, _ faults: NameFaults = NameFaults(),
    _ items: ((Item) throws -> Void) throws -> Void
  ) throws {
    var count = 0
    var table = LongTable(Item.head, columns: tableColumns)
    try items { item in
      count += 1
      guard !arguments.has("json") else { return try print(json: item, Item.dates) }
      try print(marked(table.add(item.cells)))
    }
    try print(marked(table.take()))
    try end(faults, otherwise: count == 0 ? .no : .done)
  }

  /// The same text; at a terminal with colors, the words for what needs a look are red.
  func marked(_ text: String) -> String {
    guard Palette.wanted(isTerminal: isTerminal, variable: variable) == .colours else {
      return text
    }
    return text.replacing(/\b(?:failed|stopped|suspended)\b/) { "\u{1B}[31m\($0.output)\u{1B}[0m" }
  }

  /// Writes a sentence for people, after the program's name.
  func report(_ sentence: String) {
    writeStandardError(Array("\(ProgramName.called): \(sentence.withoutControlCharacters)\n".utf8))
  }

  /// Shows the progress in one line, on a terminal only; nil clears it.
  func showProgress(_ text: String?) {
    guard errorColumns != nil else { return }
    writeStandardError(Array(("\r\u{1B}[K" + (text ?? "")).utf8))
  }

  /// Reports to people an error after which the work continues.
  func report(_ error: any Error) { report(sentence(of: error)) }

  func reportIfPolling(_ detection: ChangeDetection, _ identifier: String) {
    guard case .polling(let reason) = detection else { return }
    report(
      "\(identifier.quoted) is checked five times a second, because the kernel reports no changes: "
        + reason)
  }

  /// Prints the word by which a listening command reports that it misses nothing from now on.
  ///
  /// - Parameter endsWithReader: whether the program ends, from now on, when no process reads its
  ///   output; not for a command that prints nothing, or must give an item back before it ends.
  func reportListening(endsWithReader: Bool = true) {
    answers?.beginListening()
    if variable(CommandVariable.copy) == nil { writeStandardError(Array("listening\n".utf8)) }
    reportReady()
    if endsWithReader { endWithReader() }
  }

  func reportReady() { readiness?.announce { report($0) } }

  /// Everything on standard input. At a terminal, a line says that the program waits for it.
  func wholeStandardInput() throws -> [UInt8] {
    if isInputTerminal { report("reading standard input from the terminal; Ctrl-D ends it") }
    var all: [UInt8] = []
    while case let chunk = try inputChunk(), !chunk.isEmpty {
      all += chunk
      // An endless input (/dev/zero, a wrong pipe) must not fill the memory.
      guard all.count <= JSONInput.maximumBytes else { throw tooLarge("standard input", "it") }
    }
    return all
  }

  private func tooLarge(_ object: String, _ part: String) -> CommandError {
    CommandError(
      cannot: "read \(object)",
      because: "\(part) has more than \(JSONInput.maximumBytes >> 20) MiB", status: .badData)
  }

  /// Calls a closure with each line of a file, or of standard input, without its end, as it
  /// arrives.
  ///
  /// - Parameter keepsReturn: whether a carriage return before the end belongs to the line.
  func forEachLine(
    ofFile file: String?, keepsReturn: Bool, _ body: (ArraySlice<UInt8>) throws -> Void
  ) throws {
    var rest: [UInt8] = []
    func take(_ line: ArraySlice<UInt8>) throws {
      try body(!keepsReturn && line.last == UInt8(ascii: "\r") ? line.dropLast() : line)
    }
    // Only in the new chunk, because a line may be longer than many chunks.
    func takeLines(of chunk: [UInt8]) throws {
      var chunk = chunk[...]
      while let end = chunk.firstIndex(of: UInt8(ascii: "\n")) {
        rest += chunk[..<end]
        try take(rest[...])
        rest.removeAll(keepingCapacity: true)
        chunk = chunk[(end + 1)...]
      }
      rest += chunk
      guard rest.count <= JSONInput.maximumBytes else {
        throw tooLarge(file ?? "standard input", "a line")
      }
    }
    if let file {
      try takeLines(of: content(of: file))
    } else {
      while case let chunk = try withoutTimeLimit(inputChunk), !chunk.isEmpty {
        try takeLines(of: chunk)
      }
    }
    if !rest.isEmpty { try take(rest[...]) }
  }

  private func inputChunk() throws -> [UInt8] {
    do { return try readInput() } catch {
      throw CommandError(cannot: "read standard input", because: error)
    }
  }

  func content(of file: String) throws -> [UInt8] {
    do throws(Errno) {
      return try FileDescriptor.open(file, .readOnly)
        .readToEnd(expectedBytes: 0, maximumBytes: JSONInput.maximumBytes)
    } catch {
      throw CommandError(
        cannot: "read \(file)", because: error,
        status: error == .fileTooLarge ? .badData : nil)
    }
  }

  mutating func measure() {
    let size = Program.terminalSize(1)
    (columns, rows) = (size.columns ?? columns, size.rows ?? rows)
  }

  static var process: CommandEnvironment {
    CommandEnvironment(
      variable: { Program.environment($0) },
      readInput: { try Program.read(from: 0, maximumBytes: 64 << 10) },
      writeStandardOutput: { try Program.write($0, to: 1) },
      // With standard error closed, only the exit status can report it.
      writeStandardError: { try? Program.write($0, to: 2) },
      // Without a thread for it, the next line that is written notices it.
      endWithReader: { try? Program.endWithReader() },
      columns: Program.terminalSize(1).columns ?? 80, rows: Program.terminalSize(1).rows,
      isTerminal: Program.isTerminal(1), isInputTerminal: Program.isTerminal(0),
      // A terminal may not know its size.
      errorColumns: Program.terminalSize(2).columns ?? (Program.isTerminal(2) ? 80 : nil),
      answers: AnswerWatch { Program.exit($0.rawValue) })
  }
}

extension CommandEnvironment {
  /// Reports what a walk over all names has left out, and ends the command.
  func end(_ faults: NameFaults, otherwise status: ExitStatus = .done) throws {
    for fault in faults.all { report(fault) }
    try (faults.all.isEmpty ? status : .badData).end()
  }
}

extension ArgumentDescription {
  static let readyDescriptor = value(
    "ready-fd", .unsigned, named: "fd",
    help: "Write a line break to this descriptor, and close it, at the moment of 'listening'. A "
      + "service manager needs no option (sd_notify).")
}
