import Testing
import WormholeSystem
import WormholeTestSupport

@Suite("A lost or damaged file is reported, and hides nothing else", .blocking)
struct LostFilesTests {
  @Test("Without container.plist readers find everything, and doctor writes the file again")
  func format() throws {
    let outcome = try Session().shell(
      """
      wormhole send total 41; wormhole queue put jobs 1 >said; wormhole notify set doors 3
      rm "$C/container.plist"
      wormhole read total; wormhole ls | wc -l; wormhole queue list jobs --next --json | jq .value; wormhole notify get doors
      wormhole doctor >said; echo $?; grep -c Fault said; ls "$C/container.plist" 2>said
      wormhole doctor --json | python3 -c 'import json, sys
      for found in json.load(sys.stdin)["findings"]: print(found["command"])' | sh
      ls "$C/container.plist"
      """)
    #expect(
      outcome.output.hasPrefix("41\n3\n1\n3\n1\n1\nnothing wrong\n"), "\(outcome)")
    #expect(outcome.output.hasSuffix("/container.plist\n"), "\(outcome)")
  }

  @Test("A directory with other files only is no container yet")
  func otherFiles() throws {
    let outcome = try Session().shell(
      """
      mkdir "$C/src"; touch "$C/values"
      wormhole read total; wormhole status | grep -o 'no container yet'; ls -A "$C"
      """)
    #expect(outcome.output == "no container yet\nsrc\nvalues\n", "\(outcome)")
  }

  @Test("Doctor finds damaged entries, and messages of logs and for peers")
  func entries() throws {
    let outcome = try Session().shell(
      """
      second() { ls -d "$1"/* | sed -n 2p; }
      for n in 1 2 3; do
        wormhole queue put jobs $n; wormhole log append news $n; wormhole peer send phone $n
      done >said
      for part in queues/jobs/pending logs/news/entries own/queues/peer%2Fphone%2Fmessages/pending; do
        truncate -s 30 "$(second "$C/$part")"
      done
      wormhole doctor >said; echo $?; grep -o 'Cannot read [^:"]* "[^"]*"' said | sort
      wormhole queue list jobs | grep -c 'cannot be read'; wormhole queue list jobs --json | grep -c unreadable
      wormhole queue take jobs --follow --timeout 0.2 2>said; grep -c 'was put aside' said
      wormhole doctor | grep -c 'was put aside (1 file)'
      """)
    #expect(
      outcome.output == """
        1
        Cannot read an entry of the queue "jobs"
        Cannot read an entry of the queue "peer/phone/messages"
        Cannot read message 2 of the log "news"
        1
        1
        1
        3
        1
        1

        """, "\(outcome)")
  }

  @Test("A message of a log that cannot be read is reported, and the status says so")
  func logMessage() throws {
    let outcome = try Session().shell(
      """
      for n in 1 2 3; do wormhole log append news $n; done >said
      truncate -s 30 "$C/logs/news/entries/0000000000000002.plist"
      wormhole log read news; echo $?
      truncate -s 30 "$C/logs/news/entries/0000000000000003.plist"
      wormhole log read news --subscriber me; echo $?
      wormhole log remove news --subscriber nobody; echo $?; wormhole log remove other --subscriber somebody; echo $?
      """)
    #expect(outcome.output == "1\n3\n65\n1\n65\n1\n1\n", "\(outcome)")
    #expect(outcome.errors.contains("1 message of \"news\" before message 3"), "\(outcome)")
    #expect(outcome.errors.contains("2 messages of \"news\" cannot be read"), "\(outcome)")
  }

  @Test("A problem is reported once, also with --sweep; an unknown name is not made")
  func once() throws {
    let session = try Session()
    let outcome = try session.shell(
      """
      wormhole send total 1; touch "$C/values/afile"; wormhole notify set doors 1; chmod 500 "$C/notifications"
      wormhole doctor --sweep >said; grep -c afile said; grep -c 'its mode is 500' said
      wormhole doctor --quarantine value:nosuch >said; echo $?; wormhole ls --all | grep -c nosuch
      wormhole --group new doctor >said; echo $?; wormhole --group new doctor --strict >said; echo $?
      """)
    #expect(outcome.output == "2\n1\n1\n0\n1\n1\n", "\(outcome)")
  }
}
