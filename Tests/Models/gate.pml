/*
 * The gate of a shared lease: overlapping shared holders must not starve an exclusive waiter.
 *
 * This is rule 7 of Sources/Core/Wormhole/Wormhole.docc/RulesOfTheLease.md.
 *
 * One writer (LOCK_EX) and READERS readers (LOCK_SH) share the lease `held`; no lock call blocks,
 * and a process whose call fails tries again.  One `atomic` is one system call.  All claims are under
 * weak fairness: a process that can move for ever moves at some time; nothing is assumed about
 * speed.
 *
 * (no switch)      no gate.
 * -DGATE           the gate is one file.  A writer that found `held` busy tries LOCK_EX on it and
 *                  keeps it until it has the lease; a reader takes LOCK_SH on it, then on `held`,
 *                  then closes the gate.
 * -DOWN_GATE       each waiting writer puts up its own gate file, which it locks before the file gets
 *                  its name; a reader only checks whether there is a locked one.
 * -DSTOPS          the writer may stop for ever at every step, with its locks (suspended) or
 *                  without (killed); readers take over the lease of a suspended one and remove its
 *                  gate (-DDROP_TAKE_AWAY: they do not remove the gate).
 * -DIGNORE_GATE    (GATE) readers go through a closed gate.
 *
 * Claims (pan -N):
 *   served           a writer that waits gets the lease
 *   servedAtGate     a writer that waits and has the gate gets the lease
 *   readersGoOn      once the writer has stopped, a reader gets the lease again and again
 *
 * With GATE the writer can miss every moment without a reader in the gate.  The remaining starvation
 * lasts as long as a passage of the gate, not as long as a lease.  With OWN_GATE there is none.
 *
 * Abstracted: everything that lease.pml proves; stopped readers (their lease is taken over,
 * lease.pml).
 */

#ifndef READERS
#define READERS 2
#endif

byte sharers;                       /* shared locks on `held` */
bool writing;                       /* the exclusive lock on `held` */
byte passing;                       /* shared locks on the gate */
bool gate;                          /* the exclusive lock on the gate */
bool waiting;                       /* the writer found `held` busy */
bool reading;                       /* a reader has just got the lease */
bool stopped;                       /* the writer will never move again */
bool suspended;                     /* and keeps its locks */

#if defined(GATE) || defined(OWN_GATE)
#define HAS_GATE
#endif

#ifdef STOPS
#define OR_STOPS \
  :: atomic { true -> stopped = true; suspended = true; goto end_stopped } \
  :: atomic { true -> stopped = true; writing = false; gate = false; goto end_stopped }
#else
#define OR_STOPS
#endif

active proctype Writer() {
lock:
  if
  :: atomic { sharers == 0 -> writing = true; waiting = false; goto write }
  :: atomic { sharers != 0 -> waiting = true }
  OR_STOPS
  fi;

announce:
  if
#if defined(GATE)
  :: atomic { !gate && passing == 0 -> gate = true; goto lock }
  :: atomic { gate || passing != 0 -> goto lock }
#elif defined(OWN_GATE)
  :: atomic { true -> gate = true; goto lock }
#else
  :: atomic { true -> goto lock }
#endif
  OR_STOPS
  fi;

write:
  if
  :: atomic { true -> gate = false }
  OR_STOPS
  fi;

release:
  if
  :: atomic { true -> writing = false; goto lock }
  OR_STOPS
  fi;

#ifdef STOPS
end_stopped:
  false
#endif
}

active [READERS] proctype Reader() {
pass:
#ifdef HAS_GATE
  if
#if defined(IGNORE_GATE)
  :: atomic { true -> passing++ }
#elif defined(GATE)
  :: atomic { !gate -> passing++ }
#else
  :: atomic { !gate }
#endif
  :: atomic { gate && !suspended -> goto pass }     /* tries again */
#ifdef DROP_TAKE_AWAY
  :: atomic { gate && suspended -> goto pass }
#else
  :: atomic { gate && suspended -> gate = false; goto pass }
#endif
  fi;
#endif

lock:
  if
  :: atomic { !writing -> sharers++; reading = true }
  :: atomic { writing ->
       if
       :: suspended -> writing = false
       :: else
       fi;
#ifdef GATE
       passing--;
#endif
       goto pass }
  fi;

read:
#ifdef GATE
  atomic { passing--; reading = false };
#else
  reading = false;
#endif

release:
  atomic { sharers--; goto pass }
}

ltl served       { [] (waiting -> <> writing) }
ltl servedAtGate { [] (waiting && gate -> <> writing) }
ltl readersGoOn  { [] (stopped -> <> reading) }
