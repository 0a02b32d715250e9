/// The completion script for zsh: one function for each command, built on `_arguments`.
struct ZshCompletion {
  let root: CommandDescription

  var script: String {
    """
    #compdef \(root.name)

    \(root.paths().map(function).joined(separator: "\n"))
    # Asks the program for the names that exist, in the container that the line names.
    _\(root.name)_names() {
        local -a selection names
        local index
        for ((index = 2; index < $#whole_line; index++)); do
            case "$whole_line[index]" in
            --group|--container|--suite)
                [[ -z $whole_line[index+1] ]] ||
                    selection+=("$whole_line[index]" "${(Q)whole_line[index+1]}") ;;
            --group=*|--container=*|--suite=*) selection+=("${(Q)whole_line[index]}") ;;
            esac
        done
        names=("${(@f)$(command "${(Q)whole_line[1]}" complete-names $1 $selection \
            2>/dev/null </dev/null)}")
        names=("${(@)names:#}")
        compadd -a names
    }

    # Called as the completion function itself, or sourced.
    if [[ "$funcstack[1]" == "_\(root.name)" ]]; then
        _\(root.name) "$@"
    else
        compdef _\(root.name) \(root.name)
    fi

    """
  }

  private func functionName(_ path: [CommandDescription]) -> String {
    "_" + path.map(\.name).joined(separator: "_")
  }

  private func function(_ path: [CommandDescription]) -> String {
    guard let command = path.last else { return "" }
    var specifications = CommandDescription.options(at: path).flatMap(option)
    if command.shownSubcommands.isEmpty {
      specifications += path.markers.map { "*\($0)".inSingleQuotes }
      specifications += command.positionals.map(positional)
    } else {
      specifications += ["'1:subcommand:->subcommand'", "'*::argument:->argument'"]
    }
    let list = specifications.map { "        \($0)" }.joined(separator: " \\\n")
    return """
      \(functionName(path))() {
          local curcontext="$curcontext" state line
          local -A opt_args\(path.count == 1 ? Self.wholeLine : "")
          _arguments -C \\
      \(list)
      \(dispatch(path))}

      """
  }

  /// `_arguments` leaves a subcommand's function only the rest of the line.
  private static let wholeLine = #"""

        local -a whole_line
        whole_line=("${words[@]}")
    """#

  /// The list of subcommands, and the call of the one that was named.
  private func dispatch(_ path: [CommandDescription]) -> String {
    guard let command = path.last, !command.shownSubcommands.isEmpty else { return "" }
    let names = command.shownSubcommands.map { subcommand in
      "            \("\(subcommand.name):\(subcommand.abstract)".inSingleQuotes)"
    }
    let calls = command.shownSubcommands.map { subcommand in
      "        \(subcommand.name)) \(functionName(path + [subcommand])) ;;"
    }
    return """
          case "$state" in
          subcommand)
              local -a subcommands
              subcommands=(
      \(names.joined(separator: "\n"))
              )
              _describe subcommand subcommands ;;
          argument)
              case "$line[1]" in
      \(calls.joined(separator: "\n"))
              esac ;;
          esac

      """
  }

  private func option(_ option: OptionDescription) -> [String] {
    let help = "[\(escaped(option.help))]"
    let value = option.value.map { ":\(escaped($0.name)):\(action($0.kind))" } ?? ""
    let again = option.isRepeating ? "*" : ""
    let long = "\(again)--\(option.name)\(value.isEmpty ? "" : "=")\(help)\(value)".inSingleQuotes
    guard let letter = option.letter else { return [long] }
    return [long, "-\(letter)\(help)\(value)".inSingleQuotes]
  }

  private func positional(_ positional: PositionalDescription) -> String {
    let place = positional.isRepeating ? "*" : ""
    let colons = positional.isOptional && !positional.isRepeating ? "::" : ":"
    return "\(place)\(colons)\(escaped(positional.name)):\(action(positional.kind))".inSingleQuotes
  }

  private func action(_ kind: ValueKind) -> String {
    switch kind {
    case .choice(let values), .choices(let values): "(\(values.joined(separator: " ")))"
    case .directory: "_files -/"
    case .file: "_files"
    // With the blank, nothing is put before the kind of the names.
    case .live(let names): " _\(root.name)_names \(names.rawValue)"
    case .text, .identifier, .count, .seconds, .unsigned, .assignment: " "
    }
  }

  /// Colons and brackets structure a specification.
  private func escaped(_ text: String) -> String {
    text.map { "\\:[]".contains($0) ? "\\\($0)" : String($0) }.joined()
  }
}
