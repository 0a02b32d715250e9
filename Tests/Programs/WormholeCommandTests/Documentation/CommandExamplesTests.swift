import Foundation
import Testing
import WormholeTerminals
import WormholeTestSupport

@testable import WormholeCommand

@Suite("The examples of the help, and those that replace other programs,", .blocking)
struct CommandExamplesTests {
  private static let page = "Sources/Core/Wormhole/Wormhole.docc/ReplaceOtherPrograms.md"

  /// The lines of the help, of the recipes, and of the last column of the tables of the page.
  private static func lines() throws -> [String] {
    let help = CommandDescription.root.paths().flatMap { path in
      CommandExamples.lines(of: path)
    }
    let recipes = CommandExamples.recipes.split(separator: "\n")
      .filter { $0.hasPrefix("  ") }.map { $0.dropFirst(2) }.map(String.init)
    let table = try Readme.text(page).split(separator: "\n").filter { $0.hasPrefix("| `") }
      .compactMap { $0.split(separator: " | ").last?.split(separator: "`").first.map(String.init) }
      .map { $0.replacing("\\|", with: "|") }
    #expect(table.count > 15)
    return help + recipes + table
  }

  @Test("are two to four for each command")
  func numbers() {
    for path in CommandDescription.root.paths() where path.last?.run != nil {
      let lines = CommandExamples.lines(of: path)
      #expect((2...4).contains(lines.count), "\(path.map(\.name))")
      #expect(
        HelpText(path: path, columns: 80).rendered.contains("\nEXAMPLES:\n  \(lines.first ?? "")"))
      for line in lines {
        #expect(line.contains(path.last?.name ?? "-") && line.count <= 78)
      }
    }
  }

  /// The shells that share the lines, because one would take minutes on a busy machine.
  private static let shells = 8

  @Test("are lines that work, each in a container of its own", arguments: 0..<shells)
  func run(_ shell: Int) throws {
    let lines = try Self.lines().enumerated().filter { $0.offset % Self.shells == shell }
    let tries = lines.map { "try \($0.offset) \($0.element.inSingleQuotes)" }
    let outcome = try Session().shell(
      Self.surroundings + tries.joined(separator: "\n"), within: .seconds(240))
    #expect(outcome.output == "", "\(outcome.errors)")
  }

  /// Makes a container and a directory, and a function that tries a line in a copy of both: it ends with
  /// status 0, or says that it listens.
  private static let surroundings = #"""
    w() { wormhole "$@" >>"$T/null" 2>>"$T/said" || echo "$* ended with $?"; }
    at() { cd "$1/files"; export WORMHOLE_CONTAINER="$1/container" XDG_DATA_HOME="$1/data"; }
    mkdir base base/data base/files base/files/received; mkdir -m 700 base/container base/files/new
    at "$T/base"
    for name in print serve backup; do printf '#!/bin/sh\n:\n' >$name; done
    printf '#!/bin/sh\necho 1\n' >change; printf '#!/bin/sh\ncat\n' >answer
    chmod +x print serve backup change answer
    echo old >settings.json; : >poster.jpg; : >backup.lock
    for name in seats visitors from settings; do w send $name 7; done
    w send to 1; w send greeting hello
    w notify post lights; w notify post volume
    w defaults write volume 7; w defaults write gain 1 --suite hall
    wormhole defaults export >settings.plist
    w queue put jobs bad
    wormhole queue take jobs --retries 0 -- false 2>>"$T/said"
    w queue put jobs -- true; w queue take jobs --run --count 1
    w queue put jobs true
    w log append events 1; w log read events --subscriber printer; w log append events 2
    w presence enter till -- true; w peer context watch 1; w peer send watch 1
    w peer pairing watch --of phone; w peer launch till -- ./serve
    w backup old.backup; w --group group.com.example.cinema send a 1
    try() {
      case $2 in *etcds:*) return ;; *jq*) command -v jq >>"$T/null" || return ;; esac
      cp -a "$T/base" "$T/$1"; at "$T/$1"
      case $2 in *'peer request'*) wormhole peer serve till -- ./answer 2>serving & server=$!; says serving listening ;; esac
      { timeout 60 sh -c "$2" </dev/null >out 2>err; echo $? >status; } & pid=$!
      pause=0.01
      until test -s status || grep -qsx listening err; do pause; done
      if test -s status; then
        test "$(cat status)" = 0 || { echo "$2: $(cat status)"; cat err >&2; }
      else
        pkill -P "$pid" 2>>"$T/null"
      fi
      wait "$pid"
      if test -f serving; then kill "$server"; wait "$server"; fi
    }

    """#
}
