extension CompletionShell {
  func script(for root: CommandDescription) -> String {
    let script =
      switch self {
      case .bash: Self.bashScript
      case .zsh: Self.zshScript
      case .fish: Self.fishScript
      }
    return script.replacing("NAME", with: root.name)
  }

  /// For bash 4 and later, which splits a word at "=".
  private static let bashScript = #"""
    #!/bin/bash
    _NAME() {
        local current="${COMP_WORDS[COMP_CWORD]}" prefix='' kind word
        if [[ $current == --*=* ]]; then
            prefix="${current%%=*}=" current="${current#*=}"
        elif [[ $current == '=' ]]; then
            current=''
        fi
        COMPREPLY=()
        {
            read -r kind
            while IFS=$'\t' read -r word _; do
                [[ $word == "$current"* ]] || continue
                printf -v word %q "$word"
                COMPREPLY+=("$word")
            done
        } < <("${COMP_WORDS[0]}" complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null </dev/null)
        case "$kind" in
        files)
            compopt -o filenames 2>/dev/null
            mapfile -t COMPREPLY < <(compgen -f -- "$current") ;;
        directories)
            compopt -o filenames 2>/dev/null
            mapfile -t COMPREPLY < <(compgen -d -- "$current") ;;
        commands) mapfile -t COMPREPLY < <(compgen -c -- "$current") ;;
        esac
        COMPREPLY=("${COMPREPLY[@]/#/$prefix}")
    }

    complete -F _NAME NAME

    """#

  private static let zshScript = #"""
    #compdef NAME
    _NAME() {
        local line
        local -a lines names shown
        lines=("${(@f)$(command "${(Q)words[1]}" complete -- "${(@Q)words[2,CURRENT-1]}" "$PREFIX" \
            2>/dev/null </dev/null)}")
        compset -P '--*='
        case "$lines[1]" in
        files) _files ;;
        directories) _files -/ ;;
        commands) _command_names -e ;;
        words)
            for line in "${(@)lines[2,-1]}"; do
                names+=("${line%%$'\t'*}")
                shown+=("${line/$'\t'/  -- }")
            done
            compadd -l -d shown -a names ;;
        esac
    }

    # Called as the completion function itself, or sourced.
    if [[ "$funcstack[1]" == "_NAME" ]]; then
        _NAME "$@"
    else
        compdef _NAME NAME
    fi

    """#

  private static let fishScript = #"""
    function __NAME_complete
        set -l words (commandline -opc)
        set -l current (commandline -ct)
        set -l prefix (string match -r -- '^--[^=]*=' "$current"; or echo)
        set -l rest (string replace -r -- '^--[^=]*=' '' "$current")
        set -l lines (command $words[1] complete -- $words[2..-1] "$current" 2>/dev/null </dev/null)
        switch "$lines[1]"
            case files
                printf '%s\n' $prefix(__fish_complete_path "$rest")
            case directories
                printf '%s\n' $prefix(__fish_complete_directories "$rest")
            case commands
                __fish_complete_command
            case words
                printf '%s\n' $prefix$lines[2..-1]
        end
    end

    complete -c NAME -f -a '(__NAME_complete)'

    """#
}
