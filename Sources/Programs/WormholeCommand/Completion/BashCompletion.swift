/// The completion script for bash 4 and later: one function that walks the words before the
/// cursor and looks up tables made from the description.
struct BashCompletion {
  let root: CommandDescription

  private var paths: [[CommandDescription]] { root.paths() }

  var script: String {
    """
    #!/bin/bash
    _\(root.name)() {
        local current="${COMP_WORDS[COMP_CWORD]}" path='' option='' prefix='' help='' operands=0 index word
        local -a selection=()
        COMPREPLY=()
        for ((index = 1; index < COMP_CWORD; index++)); do
            word="${COMP_WORDS[index]}"
            if [[ -n $option ]]; then
                [[ $word == '=' ]] && continue
                case "$option" in --group|--container|--suite) selection+=("$option" "$word") ;; esac
                option=''
                continue
            fi
            if [[ $word == '--' ]]; then
                _\(root.name)_tail $((COMP_CWORD - index))
                return
            fi
            if [[ -z $path && $word == help ]]; then help=yes; continue; fi
            case "$path $word" in
    \(optionsWithValue))
                option="$word" ;;
            esac
            case "$path/$word" in
    \(subcommandPaths))
                path="$path/$word" ;;
            *)
                [[ $option || $word == -?* ]] || ((++operands)) ;;
            esac
        done
        if [[ -z $option && $current == --*=* ]]; then
            option="${current%%=*}" prefix="${current%%=*}="
            current="${current#*=}"
        fi
        if [[ -n $option ]]; then
            [[ $current == '=' ]] && current=''
            case "$path $option" in
    \(valueTable)
            esac
            COMPREPLY=("${COMPREPLY[@]/#/$prefix}")
        elif [[ $current == -* && -z $help ]]; then
            case "$path" in
    \(optionTable)
            esac
        else
            case "$path" in
    \(subcommandTable)
            esac
            case "$help$path $operands" in
    \(operandTable)
            esac
        fi
    }

    # Asks the program for the names that exist, and offers those that begin like the word.
    _\(root.name)_names() {
        local name quoted
        COMPREPLY=()
        while IFS= read -r name; do
            [[ $name == "$2"* ]] || continue
            printf -v quoted %q "$name"
            COMPREPLY+=("$quoted")
        done < <("${COMP_WORDS[0]}" complete-names "$1" "${selection[@]}" 2>/dev/null </dev/null)
    }

    _\(root.name)_tail() {
        case "$path" in
        \(tailPaths))
            if (($1 == 1)); then
                mapfile -t COMPREPLY < <(compgen -c -- "$current")
            else
                mapfile -t COMPREPLY < <(compgen -f -- "$current")
            fi ;;
        esac
    }

    complete -F _\(root.name) \(root.name)

    """
  }

  /// Each option that takes a value, with the path where it may stand: `'/listen --count'`.
  private var valued: [(pattern: String, kind: ValueKind)] {
    paths.flatMap { path in
      CommandDescription.options(at: path).compactMap { option in
        option.value.map { ("\(path.slashed) --\(option.name)".inSingleQuotes, $0.kind) }
      }
    }
  }

  private var optionsWithValue: String {
    "            " + valued.map(\.pattern).joined(separator: "|")
  }

  private var subcommandPaths: String {
    "            " + paths.dropFirst().map { $0.slashed.inSingleQuotes }.joined(separator: "|")
  }

  private var tailPaths: String {
    paths.filter { $0.last?.tail != nil }.map { $0.slashed.inSingleQuotes }.joined(separator: "|")
  }

  private var valueTable: String {
    valued.compactMap { pattern, kind in
      entry(pattern, kind)
    }.joined(separator: "\n")
  }

  private var optionTable: String {
    paths.map { path in
      let names = CommandDescription.options(at: path).map { "--\($0.name)" } + path.markers
      return entry(path.slashed.inSingleQuotes, "-W \(words(names))")
    }.joined(separator: "\n")
  }

  private var subcommandTable: String {
    paths.compactMap { path in
      guard let names = path.last?.shownSubcommands.map(\.name), !names.isEmpty else { return nil }
      let offered = path.count == 1 ? names + ["help"] : names
      return entry(path.slashed.inSingleQuotes, "-W \(words(offered))")
    }.joined(separator: "\n")
  }

  /// What may stand at the place of each operand.
  private var operandTable: String {
    paths.flatMap { path in
      (path.last?.positionals ?? []).enumerated().compactMap { index, positional in
        let place = positional.isRepeating ? "' '*" : "' \(index)'"
        return entry(path.slashed.inSingleQuotes + place, positional.kind)
      }
    }.joined(separator: "\n")
  }

  /// Nil for what cannot be completed.
  private func entry(_ pattern: String, _ kind: ValueKind) -> String? {
    switch kind {
    case .choice(let values), .choices(let values): entry(pattern, "-W \(words(values))")
    case .directory: entry(pattern, "-d")
    case .file: entry(pattern, "-f")
    case .live(let names):
      "        \(pattern)) _\(root.name)_names \(names.rawValue) \"$current\" ;;"
    case .text, .identifier, .count, .seconds, .unsigned, .assignment: nil
    }
  }

  private func words(_ words: [String]) -> String { words.joined(separator: " ").inSingleQuotes }

  private func entry(_ pattern: String, _ action: String) -> String {
    "        \(pattern)) mapfile -t COMPREPLY < <(compgen \(action) -- \"$current\") ;;"
  }
}
