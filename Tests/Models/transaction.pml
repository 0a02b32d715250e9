/*
 * A change of two values in one step: writers that are stopped anywhere, and a reader without a lock.
 *
 * One statement marked `atomic` is one system call, as in lease.pml.  A lease may be taken away from
 * its holder at every step (`fenced`; lease.pml proves that one lock); a process that is killed is one
 * that does not move any more.  Writers change value 0 and change or only read value 1, under both
 * leases; single writers change one of them.  Changes are numbered as they begin, `order` is the order
 * in which they become visible: of a transaction, all of it with its commit.
 *
 * Proved:
 *   not lost   what a writer has read is still there when its change becomes visible (`lost`).
 *   not torn   a reader that begins after a change became visible sees that or a later one, and nobody
 *              sees a change that is not visible (`torn`).  So a reader that has seen one part of a
 *              transaction sees the other.
 *
 * Each of these drops a rule, to show that the model notices:
 * -DDROP_END        the next holder removes the note, and does not end an uncommitted transaction
 * -DDROP_SETTLE     the next holder does not look at the note
 * -DDROP_MARK       files are not marked
 * -DMARK_LAST       they are marked after the commit
 * -DUNMARK          the next holder of an uncommitted transaction takes the mark back
 * -DDROP_RECHECK    a reader does not look whether the file that it has read is still there
 * -DNOTE_LAST       notes are left after the commit
 * -DDROP_READ_NOTE  a value that is only read gets no note
 * -DPART_FIRST      the content is removed before it is published
 * -DDROP_PARTS      the transaction is removed when one of two parts is settled
 *
 * Abstracted: how a lease is taken away, how the next holder finds out that there may be a note (a
 * declaration in the lease, or a lease that is not clean), files that are missing (they are looked at
 * like marked ones), the version that is kept for the loss of power.
 */

#ifndef CHANGES
#define CHANGES 3
#endif
#ifndef WRITERS
#define WRITERS 2
#endif
#ifndef SINGLES
#define SINGLES 1
#endif
#define NONE   9
#define BIT(n) (1 << (n))
#define has(set, n) ((set) & BIT(n))
#define fenced(v) (leaseBy[v] != me)

mtype = { none, open, committed, gone };

byte leaseBy[2] = NONE;
byte current[2];                /* the change whose file the value's path names */
byte marked[2];                 /* the files with a mark */
byte note[2];                   /* the transaction that is noted in the lease */
mtype state[CHANGES + 1] = none;
byte part[CHANGES + 1];         /* the values whose content the transaction still has */

byte changes;
byte visible;                   /* how many changes are */
byte order[CHANGES + 1];
byte latest[2];                 /* the last visible change of each value */
bool lost, torn;

inline appear(v, n) { latest[v] = n; order[n] = visible }

/* As the holder of the lease of a value. */
inline settle(v) {
  atomic { t = note[v] };
  if
  :: t == 0
  :: t != 0 ->
#ifndef DROP_END
     atomic {
       if
       :: state[t] == open -> state[t] = gone
       :: else
       fi };
#endif
#ifdef UNMARK
     atomic {
       if
       :: state[t] == gone && part[t] != 0 -> marked[v] = marked[v] & ~BIT(current[v])
       :: else
       fi };
#endif
     atomic { isThere = state[t] == committed && has(part[t], v) };
#ifdef PART_FIRST
     atomic { part[t] = part[t] & ~BIT(v) };
#endif
     if
     :: isThere ->
        atomic {
          if
          :: !fenced(v) -> current[v] = t
          :: else -> isLost = true
          fi }
     :: else
     fi;
     if
     :: isLost
     :: else ->
        atomic { part[t] = part[t] & ~BIT(v) };
#ifndef DROP_PARTS
        if
        :: part[t] != 0
        :: atomic { part[t] == 0 -> state[t] = gone }
        fi;
#else
        atomic { state[t] = gone };
#endif
        atomic {
          if
          :: !fenced(v) -> note[v] = 0
          :: else -> isLost = true
          fi }
     fi
  fi;
  t = 0;
  isThere = false
}

inline take(v) {
  atomic { leaseBy[v] = me };
#ifndef DROP_SETTLE
  settle(v)
#endif
}

inline leaveNote(v) {
  atomic {
    if
    :: !fenced(v) -> note[v] = mine
    :: else -> goto abandoned
    fi }
}

proctype Writer(byte me) {
  byte mine, t, first, second;
  bool isThere, isLost, isOnlyRead;

again:
  atomic {
    isLost = false; isOnlyRead = false; first = 0; second = 0; mine = 0;
    if
    :: changes < CHANGES -> changes++; mine = changes
    :: else -> goto end
    fi };
  take(0);
  if
  :: isLost -> goto again
  :: else
  fi;
  take(1);
  if
  :: isLost -> goto again
  :: else
  fi;
  atomic { first = current[0] };
  atomic { second = current[1] };
  atomic {
    if
    :: true -> isOnlyRead = true
    :: true
    fi;
    state[mine] = open;
    part[mine] = (isOnlyRead -> BIT(0) : BIT(0) | BIT(1)) };
#ifndef NOTE_LAST
  leaveNote(0);
#ifdef DROP_READ_NOTE
  if
  :: isOnlyRead
  :: else -> leaveNote(1)
  fi;
#else
  leaveNote(1);
#endif
#endif
#if !defined(DROP_MARK) && !defined(MARK_LAST)
  atomic { marked[0] = marked[0] | BIT(current[0]) };
  if
  :: isOnlyRead
  :: atomic { !isOnlyRead -> marked[1] = marked[1] | BIT(current[1]) }
  fi;
#endif
  atomic {
    if
    :: state[mine] == open ->
       state[mine] = committed;
       lost = latest[0] != first || latest[1] != second;
       assert(!lost);
       visible++;
       appear(0, mine);
       if
       :: isOnlyRead
       :: else -> appear(1, mine)
       fi
    :: else -> goto abandoned
    fi };
#ifdef NOTE_LAST
  leaveNote(0);
  leaveNote(1);
#endif
#ifdef MARK_LAST
  atomic { marked[0] = marked[0] | BIT(current[0]) };
  atomic { marked[1] = marked[1] | BIT(current[1]) };
#endif
abandoned:
  atomic {
    if
    :: state[mine] == open -> state[mine] = gone
    :: else
    fi };
  if
  :: fenced(0)
  :: !fenced(0) -> settle(0)
  fi;
  isLost = false;
  if
  :: fenced(1)
  :: !fenced(1) -> settle(1)
  fi;
  goto again;
end:
  skip
}

proctype Single(byte me) {
  byte mine, t, found, v;
  bool isThere, isLost;

again:
  atomic {
    isLost = false; found = 0; mine = 0; v = 0;
    if
    :: changes < CHANGES -> changes++; mine = changes; v = 0
    :: changes < CHANGES -> changes++; mine = changes; v = 1
    :: else -> goto end
    fi };
  take(v);
  if
  :: isLost -> goto again
  :: else
  fi;
  atomic { found = current[v] };
  atomic {
    if
    :: !fenced(v) ->
       lost = latest[v] != found;
       assert(!lost);
       current[v] = mine;
       visible++;
       appear(v, mine)
    :: else
    fi };
  goto again;
end:
  skip
}

proctype Reader() {
  byte found, got, asked, t, v;
  bool isThere;

end_looks:
  do
  :: atomic {
       if
       :: v = 0
       :: v = 1
       fi;
       asked = order[latest[v]] };
opening:
     atomic { found = current[v]; got = found };
     atomic {
       if
       :: !has(marked[v], found) -> goto check
       :: else
       fi };
     atomic { t = note[v] };
     if
     :: t == 0
     :: t != 0 ->
        atomic { isThere = state[t] == committed };
        atomic {
          if
          :: isThere && has(part[t], v) -> got = t; goto check
          :: else -> isThere = false; t = 0
          fi }
     fi;
#ifndef DROP_RECHECK
     atomic {
       if
       :: current[v] == found
       :: else -> goto opening
       fi };
#endif
check:
     atomic {
       torn = order[got] < asked || (got != 0 && order[got] == 0);
       assert(!torn);
       v = 0; asked = 0; found = 0; got = 0; t = 0; isThere = false }
  od
}

init {
  byte k;
  atomic {
    do
    :: k < WRITERS -> run Writer(k); k++
    :: k >= WRITERS && k < WRITERS + SINGLES -> run Single(k); k++
    :: k == WRITERS + SINGLES -> break
    od;
    run Reader()
  }
}
