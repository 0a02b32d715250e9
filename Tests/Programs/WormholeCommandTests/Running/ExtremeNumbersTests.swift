import Glibc
import Testing
import WormholeSystem
import WormholeTestSupport

/// The numbers that a kernel may report: a program may give a file any time, a clock may be set to any, and
/// a file without blocks may have any size.
@Suite("A time or a size may be any number", .blocking)
struct ExtremeNumbersTests {
  /// `check` runs `before`, and a command that may fail, but must not trap: that is a signal, and a status of 128 or
  /// more. `says` compares what one prints.
  private static let functions = """
    before() { :; }
    check() {
      before; "$@" >said 2>failed </dev/null; status=$?
      test $status -lt 128 || echo "status $status: $* $(grep -m1 -E 'Fatal|overflow' failed)"
    }
    prints() {
      expected=$1; shift; check "$@"
      test "$(cat said)" = "$expected" || echo "$* prints $(cat said), not $expected: $(cat failed)"
    }

    """

  private static let work = """
    check wormhole send a 1; prints 1 wormhole read a; prints 1 wormhole listen a --current --count 1
    check wormhole send e 2 --expires 1h; prints 2 wormhole read e; check wormhole read --details e
    check wormhole update a -- cat; prints 2 wormhole update a --add 1
    check wormhole notify set n 4; prints 4 wormhole notify get n
    check wormhole queue put q 1; check wormhole queue put q 2 --delay 0.1
    check wormhole queue list q; prints 1 wormhole queue take q --count 1 --timeout 20
    check wormhole queue take q --count 1 --timeout 20 --retries 0 -- false; check wormhole queue list
    check wormhole log append l 5; prints 5 wormhole log read l; prints 5 wormhole log read l --subscriber s
    check wormhole log read l --since 1h; check wormhole log bounds l --age 1h
    prints in wormhole presence enter p -- echo in; check wormhole presence list
    check wormhole defaults write k 3; prints 3 wormhole defaults read k
    check wormhole peer send x 6 --from y --receipt --expires 1h
    prints 6 wormhole peer receive x --count 1 --timeout 20; check wormhole peer transfers y
    check wormhole lock f -- true; check wormhole lock f -- true {}; check wormhole lock d -- true {}
    check wormhole watch f --timeout 0.1; check wormhole monitor --timeout 0.1

    """

  private static let looks = """
    check wormhole ls; check wormhole ls -l a q l n; check wormhole status; check wormhole status --json
    check wormhole doctor; check wormhole doctor --sweep; rm -rf copied archive restored
    prints "" wormhole copy copied; check wormhole backup archive
    check wormhole restore archive --container restored
    prints 2 wormhole read a --container restored

    """

  private static let isCompilerMissing: Bool = {
    do {
      try runQuietly("gcc", ["--version"])
      return false
    } catch {
      print("skipped: no gcc here (Debian: apt-get install gcc): \(error)")
      return true
    }
  }()

  /// In place of the C library's functions, by the time of day in a variable.
  private static let clock = """
    #define _GNU_SOURCE
    #include <stdlib.h>
    #include <sys/syscall.h>
    #include <sys/time.h>
    #include <time.h>
    #include <unistd.h>
    int clock_gettime(clockid_t clock, struct timespec *now) {
      int result = syscall(SYS_clock_gettime, clock, now);
      const char *seconds = getenv("SECONDS_SINCE_1970");
      if (clock == CLOCK_REALTIME && seconds) now->tv_sec = atoll(seconds);
      return result;
    }
    int gettimeofday(struct timeval *now, void *zone) {
      struct timespec time;
      clock_gettime(CLOCK_REALTIME, &time);
      *now = (struct timeval){time.tv_sec, time.tv_nsec / 1000};
      return 0;
    }
    """

  @Test(
    "of the clock, and every command does its work",
    .disabled(if: isCompilerMissing), arguments: [9_223_372_037, Int64.max, .min])
  func clocks(seconds: Int64) throws {
    let outcome = try Session().shell(
      """
      cat >clock.c <<'END'
      \(Self.clock)
      END
      gcc -shared -fPIC -o clock.so clock.c || exit; mkdir d; echo x >f; echo y >d/g
      \(Self.functions)
      wormhole() { SECONDS_SINCE_1970=\(seconds) LD_PRELOAD="$T/clock.so" command wormhole "$@"; }
      \(Self.work)\(Self.looks)
      """)
    #expect(outcome.status == 0 && outcome.output == "", "\(outcome)")
  }

  /// A tmpfs stores all 64 bits.
  private static let memory: String? = {
    do {
      let place = "/dev/shm"
      guard try FileDescriptor.open(place, .pathOnly).fileSystem().magic == 0x0102_1994 else {
        throw Errno.noSuchDevice
      }
      return place
    } catch {
      print("skipped: /dev/shm is no tmpfs: \(error)")
      return nil
    }
  }()

  @Test(
    "of a file's time, and every command does its work", .disabled(if: memory == nil),
    arguments: [Int64.min, .max])
  func times(seconds: Int64) throws {
    let outcome = try session(
      """
      before() { find . -exec touch -h -d @\(seconds) {} +; }
      \(Self.work)\(Self.looks)
      """)
    #expect(outcome.status == 0 && outcome.output == "", "\(outcome)")
  }

  /// Only looked at: a copy of so many bytes takes long.
  @Test("of a file's size, and sums of them end at the largest", .disabled(if: memory == nil))
  func sizes() throws {
    let outcome = try session(
      """
      \(Self.work)
      check wormhole log append l 6; check wormhole log append l 7; check wormhole queue put q 8
      mkdir c/quarantine; echo x >c/quarantine/q-1; echo x >c/quarantine/q-2
      truncate -s \(Int64.max) c/logs/l/entries/* c/quarantine/* c/queues/q/pending/* c/beside c/other
      for command in ls "ls --all" "stat a q l" status "status --json" doctor "queue list" "queue list q"; do
        check wormhole $command
      done
      """)
    #expect(outcome.status == 0 && outcome.output == "", "\(outcome)")
  }

  private func session(_ script: String) throws -> Session.Outcome {
    try Session().shell(
      """
      \(Self.functions)
      at=$(mktemp -d \(Self.memory ?? "")/wormhole-XXXXXX) || exit; trap 'rm -rf "$at"' EXIT
      cd "$at" && mkdir -m 700 c d && echo x >f && echo y >d/g || exit
      export WORMHOLE_CONTAINER="$at/c"
      \(script)
      """)
  }
}
