/// The completion script for fish: a function that finds the command of the line, and one
/// `complete` for each thing that may stand there.
struct FishCompletion {
  let root: CommandDescription

  var script: String {
    let valued = Set(
      root.paths().flatMap { path in
        CommandDescription.options(at: path).filter { $0.value != nil }.map { "--\($0.name)" }
      })
    let paths = root.paths().dropFirst().map { $0.slashed.inSingleQuotes }
    return """
      function __\(root.name)_at
          set -l path ''
          set -l skip no
          for word in (commandline -opc)[2..-1]
              if test $skip = yes
                  set skip no
                  continue
              end
              switch $word
                  case \(valued.sorted().joined(separator: " "))
                      set skip yes
                      continue
                  case --
                      return 1
              end
              switch "$path/$word"
                  case \(paths.joined(separator: " "))
                      set path "$path/$word"
              end
          end
          test "$path" = "$argv[1]"
      end

      function __\(root.name)_names
          set -l words (commandline -opc)
          set -l selection
          for index in (seq 2 (count $words))
              switch $words[$index]
                  case --group --container --suite
                      test $index -lt (count $words); or continue
                      set -a selection $words[$index] $words[(math $index + 1)]
                  case '--group=*' '--container=*' '--suite=*'
                      set -a selection $words[$index]
              end
          end
          command $words[1] complete-names $argv[1] $selection 2>/dev/null </dev/null
      end

      complete -c \(root.name) -f
      \(root.paths().flatMap(lines).joined(separator: "\n"))

      """
  }

  private func lines(_ path: [CommandDescription]) -> [String] {
    let start = "complete -c \(root.name) -n \"__\(root.name)_at '\(path.slashed)'\""
    let subcommands = (path.last?.shownSubcommands ?? []).map { subcommand in
      "\(start) -a \(subcommand.name) -d \(quoted(subcommand.abstract))"
    }
    let takesFiles = path.last?.positionals.contains { $0.kind == .file } ?? false
    let names = Set((path.last?.positionals ?? []).compactMap { live($0.kind) })
    return subcommands + (takesFiles ? [start + " -F"] : [])
      + names.sorted().map { "\(start) -a \($0)" }
      + path.markers.map { "\(start) -o \($0.dropFirst())" }
      + CommandDescription.options(at: path).map { start + option($0) }
  }

  /// The command substitution that lists the names; nil for any other kind.
  private func live(_ kind: ValueKind) -> String? {
    guard case .live(let names) = kind else { return nil }
    return "'(__\(root.name)_names \(names.rawValue))'"
  }

  private func option(_ option: OptionDescription) -> String {
    var line = " -l \(option.name)"
    if let letter = option.letter { line += " -s \(letter)" }
    switch option.value?.kind {
    case nil: break
    case .choice(let values), .choices(let values):
      line += " -x -a \(quoted(values.joined(separator: " ")))"
    case .directory: line += " -x -a '(__fish_complete_directories)'"
    case .file: line += " -r -F"
    case .live(let names): line += " -x -a '(__\(root.name)_names \(names.rawValue))'"
    case .text, .identifier, .count, .seconds, .unsigned, .assignment: line += " -x"
    }
    return line + " -d \(quoted(option.help))"
  }

  /// Inside single quotes fish escapes the quote and the backslash.
  private func quoted(_ text: String) -> String {
    "'" + text.map { "'\\".contains($0) ? "\\\($0)" : String($0) }.joined() + "'"
  }
}
