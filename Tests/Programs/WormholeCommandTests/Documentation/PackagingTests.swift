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
      "for tool in dpkg dpkg-deb tar gzip strip git; do command -v $tool >\"$T/null\" || echo $tool; done"
    )
    guard missing.output.isEmpty else {
      print("skipped: not installed: \(missing.output)")
      return
    }
    let program = try BuiltProgram.path("wormhole")
    let made = try session.shell(
      """
      export SOURCE_DATE_EPOCH=1700000000
      '\(Self.script)' --binary '\(program)' --uncompressed "$T/a/packages" && cd "$T/a/packages" && ls
      '\(Self.script)' --binary '\(program)' --uncompressed "$T/b" && cmp *.deb "$T/b/"*.deb && cmp *.gz "$T/b/"*.gz
      rm -r "$T/b"
      """, within: .seconds(180))
    #expect(made.status == 0, "\(made.errors)")
    let architecture = try session.shell("dpkg --print-architecture").output.dropLast()
    #expect(
      made.output == """
        wormhole-0.1.0-\(architecture).tar.gz
        wormholectl_0.1.0_\(architecture).deb

        """)
    try debian(session)
    try tarball(session)
  }

  private static let files = """
    bin/wormholectl
    share/bash-completion/completions/wormholectl
    share/doc/wormholectl/copyright
    share/fish/vendor_completions.d/wormholectl.fish
    share/man/man1/wormholectl.1.gz
    share/man/man5/wormhole-format.5.gz
    share/zsh/vendor-completions/_wormholectl

    """

  /// As root, dpkg(1) itself installs and removes it below another root; else only its content is seen.
  private func debian(_ session: Session) throws {
    let outcome = try session.shell(
      """
      export PATH="$PATH:/usr/sbin:/sbin"; R="$T/root"; mkdir -p "$R/var/lib/dpkg/info" "$R/var/lib/dpkg/updates"
      : >"$R/var/lib/dpkg/status"; : >"$R/var/lib/dpkg/available"
      packed() { dpkg --root="$R" --log="$T/null" --force-script-chrootless --force-depends "$@" >"$T/said" 2>&1 || cat "$T/said"; }
      dpkg-deb -f a/packages/*.deb Depends Recommends | sed 's/2[.][0-9]*/2.N/'
      if [ "$(id -u)" = 0 ]; then packed -i a/packages/*.deb; else dpkg-deb -x a/packages/*.deb "$R"; fi
      (cd "$R/usr" && find . -type f | sed 's|^./||' | grep -v /examples/ | LC_ALL=C sort)
      "$R/usr/bin/wormholectl" send greeting hello && "$R/usr/bin/wormholectl" read greeting
      "$R/usr/bin/wormholectl" read absent
      gzip -dc "$R/usr/share/man/man1/wormholectl.1.gz" | head -1
      grep -c . "$R/usr/share/doc/wormholectl/examples/"*.service >"$T/null" || echo no examples
      if [ "$(id -u)" = 0 ]; then packed -r wormholectl; else rm -r "$R/usr"; fi
      find "$R" -name '*wormhole*'
      """)
    #expect(
      outcome.output == """
        Depends: libc6 (>= 2.N)
        Recommends: libcurl4

        """ + Self.files + """
          "hello"
          .TH "WORMHOLECTL" 1 "" "wormholectl 0.1.0" "User Commands"

          """, "\(outcome.errors)")
    #expect(outcome.errors.contains("wormholectl: cannot read \"absent\""))
  }

  private func tarball(_ session: Session) throws {
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
        0.1.0
        .TH "WORMHOLE" 1 "" "wormhole 0.1.0" "User Commands"
        .TH "WORMHOLE\\-FORMAT" 5 "" "wormhole 0.1.0" "File Formats"
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
