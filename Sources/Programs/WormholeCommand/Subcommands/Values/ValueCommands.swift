import Wormhole
import WormholePropertyLists
import WormholeTerminals

extension CommandDescription {
  static let send = CommandDescription(
    name: "send",
    abstract: "Publish a value.",
    discussion: """
      The value replaces the last one with this name in one step: a reader sees the old one \
      or the new one, whole.

      With --expires the value is gone after that time for every reader, as if it was removed. The \
      time of day counts.

      With --if-version the value is sent only if nobody has changed it since that version was read; \
      otherwise nothing changes, and the exit status is 1.

      With --lines each line is a value as soon as it comes. A line without a valid value is reported and \
      left out, and the exit status is 65 in the end.

      A bare word that is not JSON is a string: 'send greeting hello', 'send place ./backup'. Anything that \
      starts like JSON ({, [, ", or a number) must be valid JSON, and so must an empty argument.
      """,
    arguments: [.valueName, .jsonValue("value")] + ArgumentDescription.valueSources + [
      .lines, .valueExpires, .ifVersion, .whileRole, .durable("the value"), .writeTimeout,
    ]
  ) { arguments, environment in
    let identifier = arguments.requiredText("name")
    // Opened for the first value: without one, no container is made.
    var opened: PlainValue?
    try arguments.forEachValue(environment, object: "the value") { message in
      let value = try opened ?? arguments.container.open(.value(identifier)).value(identifier)
      opened = value
      guard arguments.text("if-version") == nil else {
        return try value.compareAndSet(message, arguments, to: "send")
      }
      try arguments.underRole(environment, in: value.container) { fence in
        if let fence {
          return try value.replace(
            with: message, while: fence, durability: arguments.durability,
            until: arguments.deadline())
        }
        try value.replace(
          with: message, durability: arguments.durability,
          expiresAfter: arguments.duration("expires"), until: arguments.deadline())
      }
    }
  }
  .refusing { arguments in
    arguments.conflict(of: "while", "expires") ?? arguments.conflict(of: "while", "if-version")
      ?? arguments.conflict(of: "lines", "if-version") ?? ParsedArguments.valueProblem(arguments)
  }

  static let read = CommandDescription(
    name: "read",
    abstract: "Print the latest value; exit status 1 if there is none.",
    discussion: """
      A name with '*', '?' or '[' that no value has exactly is a pattern of a shell, and stands for \
      every value whose name matches it. With a pattern or several names a line is {"identifier": \
      ..., "message": ...}. A name without a value, and one that cannot be read, is reported, the others \
      are printed, and the exit status is 1, or that of the error.

      With --details a line is {"expires": ..., "identifier": ..., "message": ..., "publisher": \
      {"date": ..., "peer": ..., "process": ..., "program": ...}, "version": ...}: the process that sent \
      the value, and when; and a text that changes with every change, for --if-version. "expires" is \
      left out for a value that does not expire, "peer" for a process that was none, and "publisher" \
      for a file that another kind of program wrote.
      """,
    arguments: [
      .valueNames(),
      .details, .jsonAlways, .format,
    ]
  ) { arguments, environment in
    let container = try arguments.container.openExisting()
    let names = arguments.texts("name")
    var status = ExitStatus.done
    for name in names {
      let found = try container?.values(named: name) ?? [name]
      let namesEach = names.count > 1 || found != [name]
      var isFound = false
      for identifier in found {
        do {
          let snapshot = try container?.value(identifier).snapshot()
          guard let snapshot, let message = try snapshot.propertyList() else { continue }
          isFound = true
          let line = arguments.line(of: message, snapshot, identifier, isOneOfSeveral: namesEach)
          try environment.print(arguments.outputFormat.bytes(line, of: identifier.quoted))
        } catch let error where namesEach && (error is WormholeError || isUnprintable(error)) {
          isFound = true
          environment.report(error)
          status = ExitStatus(of: error)
        }
      }
      guard !isFound else { continue }
      let reason =
        ShellPattern.isMeant(by: name) ? "no value matches it" : "there is no such value"
      environment.report(CommandError.no("read \(name.quoted)", because: reason))
      status = .no
    }
    try status.end()
  }

  static let removeMessages = CommandDescription(
    name: "remove",
    abstract: "Remove values.",
    discussion: """
      A name with '*', '?' or '[' that no value has exactly is a pattern of a shell, and stands for \
      every value whose name matches it. The exit status is 1 if there is no such value; the others \
      are removed nevertheless.

      With --if-version a value is removed only if nobody has changed it since that version was read; \
      otherwise it stays, and the exit status is 1.
      """,
    arguments: [
      .valueNames(isOptional: true),
      .flag("all", help: "Remove every value of the container."),
      .ifVersion, .writeTimeout,
    ]
  ) { arguments, environment in
    guard let container = try arguments.container.openExisting() else {
      if arguments.has("all") || arguments.text("if-version") == "none" { return }
      throw CommandError.no("remove values", because: "there are none")
    }
    var identifiers: [String] = []
    var status = ExitStatus.done
    if arguments.has("all") { identifiers = try container.valueIdentifiers() }
    for name in arguments.texts("name") {
      let found = arguments.text("if-version") == nil ? try container.values(named: name) : [name]
      if found.isEmpty {
        environment.report("no value matches \(name.quoted)")
        status = .no
      }
      identifiers += found
    }
    for identifier in identifiers {
      do {
        let value = container.value(identifier)
        if arguments.text("if-version") != nil {
          try value.compareAndSet(nil, arguments, to: "remove")
        } else if try !value.remove(until: arguments.deadline()),
          arguments.texts("name").contains(identifier)
        {
          let reason = try "there is no such value" + container.others(named: identifier)
          environment.report(CommandError.no("remove \(identifier.quoted)", because: reason))
          status = .no
        }
      } catch let error as WormholeError {
        // A value that cannot be removed does not keep the others from being removed.
        environment.report(error)
        status = ExitStatus(of: error)
      }
    }
    try status.end()
  }
  .refusing { arguments in
    if arguments.text("if-version") != nil, arguments.texts("name").count != 1 {
      return "--if-version needs exactly one name"
    }
    return switch (arguments.has("all"), arguments.texts("name").isEmpty) {
    case (true, false): "--all and names exclude each other"
    case (false, true): "missing expected argument '<name>': name values, or give --all"
    case (true, true), (false, false): nil
    }
  }
}

extension SharedContainer {
  /// What a name that is not a value's stands for, and how that is removed.
  fileprivate func others(named name: String) throws -> String {
    let kinds = [
      ("log remove", "log", try logNames()), ("queue remove --all", "queue", try queueNames()),
    ]
    return kinds.filter { $0.2.contains { $0.utf8.elementsEqual(name.utf8) } }.map {
      "; '\(ProgramName.called) \($0.0) \(name.quotedForShell)' is for the \($0.1) of this name"
    }.joined()
  }

  /// The names that a name stands for: itself, or all values that match it, sorted.
  fileprivate func values(named name: String) throws -> [String] {
    func exists(_ name: String) throws -> Bool { try value(name).version() != nil }
    guard ShellPattern.isMeant(by: name), try !exists(name) else { return [name] }
    let pattern = ShellPattern(name)
    return try valueIdentifiers().filter { name in
      guard pattern.matches(name) else { return false }
      // One that cannot be looked at is one of them: what is done with it reports why.
      do { return try exists(name) } catch is WormholeError { return true }
    }
    .sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
  }
}

extension ArgumentDescription {
  static func valueNames(isOptional: Bool = false) -> ArgumentDescription {
    list(
      "name", .live(.value), isOptional: isOptional,
      help: "The names of the values, or patterns.")
  }

  static let ifVersion = value(
    "if-version", .identifier, named: "version",
    help: "Only if the value is still of this version, which 'ls -l' and 'read --details' "
      + "print; 'none' means that there is none.")

  static let valueExpires = value(
    "expires", .duration, help: "Expire the value after this time (default: never).")

  static let writeTimeout = value(
    "timeout", .duration, standard: "10",
    help: "How long to wait while another process is changing it.")
}

extension PlainValue {
  /// Replaces or removes a value according to `--if-version`; throws if it has another version.
  fileprivate func compareAndSet(
    _ message: PropertyListValue?, _ arguments: ParsedArguments, to verb: String
  ) throws {
    let expected = arguments.text("if-version").flatMap { $0 == "none" ? nil : $0 }
    let isDone = try compareAndSet(
      versionText: expected, message, durability: arguments.durability,
      expiresAfter: arguments.duration("expires"), until: arguments.deadline())
    guard !isDone else { return }
    let now = try version().map { "it is of version \($0.text) now" } ?? "there is none now"
    throw CommandError.no(
      "\(verb) \(identifier.quoted)", because: "the value was changed: \(now)")
  }
}

extension ParsedArguments {
  /// A value as it is printed: with the details of its publication if `--details` is given, and with
  /// its name if it is one of several.
  func line(
    of message: PropertyListValue, _ snapshot: PlainSnapshot, _ identifier: String,
    isOneOfSeveral: Bool
  ) -> any Encodable {
    guard has("details") else {
      return isOneOfSeveral ? ["identifier": .string(identifier), "message": message] : message
    }
    return [
      "expires": snapshot.expiration, "identifier": identifier, "message": message,
      "publisher": snapshot.publisher, "version": snapshot.version,
    ] as JSONObject
  }
}
