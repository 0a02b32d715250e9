import Foundation
import Testing
import WormholeSystem
import WormholeTestSupport

@Suite("The packages", .blocking)
struct PackagingTests {
  private static let script = Checkout.path("Sources/Workshop/Packaging/package")

  @Test("are made, installed, used and removed again, and leave nothing")
  func life() throws {
    let session = try Session()
    let missing = try session.shell(
      "for tool in dpkg dpkg-deb tar gzip strip objcopy git; do command -v $tool >\"$T/null\" || echo $tool; done"
    )
    guard missing.output.isEmpty else {
      print("skipped: not installed: \(missing.output)")
      return
    }
    let program = try BuiltProgram.asBuilt("wormhole")
    let made = try session.shell(
      """
      export SOURCE_DATE_EPOCH=1700000000
      '\(Self.script)' --binary '\(program)' --uncompressed "$T/a/packages" >"$T/sums" && cd "$T/a/packages" && ls
      sha256sum -c --quiet "$T/sums"
      # As if it had been built in a different place.
      objcopy --dump-section .swift_modhash="$T/hash" '\(program)' "$T/other"
      tr '\\000-\\376' '\\001-\\377' <"$T/hash" >"$T/changed"
      objcopy --update-section .swift_modhash="$T/changed" '\(program)' "$T/other"
      '\(Self.script)' --binary "$T/other" --uncompressed "$T/b" | cmp - "$T/sums"
      rm -r "$T/b" "$T/hash" "$T/changed" "$T/other"
      """, within: .seconds(180))
    #expect(made.status == 0, "\(made.errors)")
    let said = try session.shell("dpkg --print-architecture; uname -m; wormhole --version").output
    let words = said.split(separator: "\n")
    let (architecture, machine, version) = (words[0], words[1], String(words[2]))
    #expect(
      made.output == """
        wormhole-\(version)-\(machine).tar.gz
        wormholectl_\(version)_\(architecture).deb

        """)
    try debian(session, version)
    try magic(session)
    try download(session)
    try tarball(session, version)
  }

  @Test(
    "have libraries that declare nothing on other systems, so that a package for several can name them"
  )
  func elsewhere() throws {
    let outcome = try Session().shell(
      #"""
      mkdir -p wormhole/Sources/Core client/Sources/C; cd wormhole
      cp -r '\#(Checkout.path("Sources/Core/WormholeElsewhere"))' Sources/Core
      # As another system reads the manifest.
      sed 's/^#if os(Linux)/#if os(Windows)/' '\#(Checkout.path("Package.swift"))' >Package.swift
      cd ../client
      cat >Package.swift <<'END'
      // swift-tools-version: 6.2
      import PackageDescription
      let uses = ["Wormhole", "WatchConnectivity", "notify", "Combine", "ConnectivityTesting"]
      let package = Package(
        name: "client", dependencies: [.package(path: "../wormhole")],
        targets: [
          .executableTarget(
            name: "C", dependencies: uses.map { .product(name: $0, package: "wormhole") })
        ])
      END
      cat >Sources/C/Main.swift <<'END'
      @main struct C {
        static func main() {
          #if canImport(Wormhole) || canImport(WatchConnectivity)
            print("imported")
          #else
            print("nothing")
          #endif
        }
      }
      END
      swift run 2>said || cat said >&2
      """#, within: .seconds(300))
    #expect(outcome.output == "nothing\n", "\(outcome)")
  }

  /// A version as a manual page has it.
  private static func roff(_ version: String) -> String { version.replacing("-", with: "\\-") }

  private static let files = """
    bin/wormholectl
    share/bash-completion/completions/wormholectl
    share/doc/wormholectl/CHANGELOG.md.gz
    share/doc/wormholectl/changelog.gz
    share/doc/wormholectl/copyright
    share/fish/vendor_completions.d/wormholectl.fish
    share/man/man1/wormholectl.1.gz
    share/man/man5/wormhole-format.5.gz
    share/zsh/vendor-completions/_wormholectl

    """

  /// As root, dpkg(1) itself installs and removes it below another root; else only its content is seen.
  private func debian(_ session: Session, _ version: String) throws {
    let outcome = try session.shell(
      """
      export PATH="$PATH:/usr/sbin:/sbin"; R="$T/root"; mkdir -p "$R/var/lib/dpkg/info" "$R/var/lib/dpkg/updates"
      : >"$R/var/lib/dpkg/status"; : >"$R/var/lib/dpkg/available"
      packed() { dpkg --root="$R" --log="$T/null" --force-script-chrootless --force-depends "$@" >"$T/said" 2>&1 || cat "$T/said"; }
      dpkg-deb -f a/packages/*.deb Depends Version | sed 's/2[.][0-9]*/2.N/; /^Version/s/~/-/'
      if [ "$(id -u)" = 0 ]; then packed -i a/packages/*.deb; else dpkg-deb -x a/packages/*.deb "$R"; fi
      (cd "$R/usr" && find . -type f | sed 's|^./||' | grep -v -e /examples/ -e /wormholectl- | LC_ALL=C sort)
      "$R/usr/bin/wormholectl" send greeting hello && "$R/usr/bin/wormholectl" read greeting
      "$R/usr/bin/wormholectl" read absent
      if [ "$(id -u)" = 0 ]; then readlink "$R/etc/alternatives/wormhole"; else echo /usr/bin/wormholectl; fi
      gzip -dc "$R/usr/share/man/man1/wormholectl.1.gz" | head -1
      grep -c . "$R/usr/share/doc/wormholectl/examples/"*.service >"$T/null" || echo no examples
      if [ "$(id -u)" = 0 ]; then packed -r wormholectl; else rm -r "$R/usr"; fi
      find "$R" -name '*wormhole*'
      """)
    #expect(
      outcome.output == """
        Depends: libc6 (>= 2.N), libcurl4 | libcurl4t64
        Version: \(version)

        """ + Self.files + """
          "hello"
          /usr/bin/wormholectl
          .TH "WORMHOLECTL" 1 "" "wormholectl \(Self.roff(version))" "User Commands"

          """, "\(outcome.errors)")
    #expect(outcome.errors.contains("wormholectl: cannot read \"absent\""))
  }

  /// Where magic-wormhole has a program of the first name, it keeps it.
  private func magic(_ session: Session) throws {
    let outcome = try session.shell(
      """
      [ "$(id -u)" = 0 ] || { printf 'magic\\nmagic\\n'; exit; }
      export PATH="$PATH:/usr/sbin:/sbin"; R="$T/root"; mkdir -p "$R/usr/bin"; echo magic >"$R/usr/bin/wormhole"
      packed() { dpkg --root="$R" --log="$T/null" --force-script-chrootless --force-depends "$@" >"$T/said" 2>&1 || cat "$T/said"; }
      packed -i a/packages/*.deb; "$R/usr/bin/wormholectl" --version >"$T/null" && cat "$R/usr/bin/wormhole"
      packed -P wormholectl; cat "$R/usr/bin/wormhole"; find "$R" -name '*wormholectl*'
      """)
    #expect(outcome.output == "magic\nmagic\n", "\(outcome.errors)")
  }

  /// The README's first command, with a directory in the place of the server.
  private func download(_ session: Session) throws {
    let block = try #require(
      Readme.blocks(of: "sh").first { $0.section == ReadmeTests.download }, "\(Readme.root)")
    let server = #/https:\S*/#
    #expect(block.text.matches(of: server).count == 1)
    let outcome = try session.shell(
      """
      (cd a/packages && sha256sum *.deb *.gz >SHA256SUMS)
      mkdir "$T/download"; export HOME="$T/download"; cd "$HOME"
      \(block.text.replacing(server, with: "file://$T/a/packages"))
      .local/bin/wormhole --version; rm "$T/a/packages/SHA256SUMS"
      """)
    let name = try #require(outcome.output.split(separator: "\n").first)
    #expect(name.hasSuffix(".tar.gz: OK"), "\(outcome.errors)")
    #expect(outcome.output.split(separator: "\n").count == 2, "\(outcome.output)")
  }

  private func tarball(_ session: Session, _ version: String) throws {
    let outcome = try session.shell(
      """
      mkdir local; echo mine >local/mine
      tar -xf a/packages/*.tar.gz --strip-components=1 -C local && cd local
      find . ! -type d | sed 's|^./||' | grep -v '^mine$' | LC_ALL=C sort | cmp - share/doc/wormhole/files
      bin/wormhole --version; bin/wormholectl read absent
      head -1 share/man/man1/wormhole.1 share/man/man5/wormhole-format.5 | grep TH
      tail -1 share/bash-completion/completions/wormholectl
      cut -c1-11 share/doc/wormhole/LICENSE | head -1
      xargs -d '\\n' -a share/doc/wormhole/files rm && find . -type f
      """)
    #expect(
      outcome.output == """
        \(version)
        .TH "WORMHOLE" 1 "" "wormhole \(Self.roff(version))" "User Commands"
        .TH "WORMHOLE\\-FORMAT" 5 "" "wormhole \(Self.roff(version))" "File Formats"
        complete -F _wormholectl wormholectl
        MIT License
        ./mine

        """, "\(outcome.errors)")
    #expect(outcome.errors.contains("wormholectl: cannot read \"absent\""))
  }

  @Test("are refused with the reason where something is missing")
  func refused() throws {
    let outcome = try Session().shell(
      """
      P='\(Self.script)'
      "$P"; "$P" --binary; "$P" --binary "$T/absent" "$T/out"; "$P" --other "$T/out"; "$P" a b
      ls "$T" | grep out$
      """)
    #expect(outcome.output == "")
    #expect(
      outcome.errors.split(separator: "\n").map { $0.prefix(30) }.count == 5
        && outcome.errors.split(separator: "\n").allSatisfy { $0.hasPrefix("package: ") },
      "\(outcome.errors)")
  }
}
