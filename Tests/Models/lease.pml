/*
 * The lease of a value, or of an item: exclusive change that cannot deadlock.
 *
 * "Rule <n>" is that of Sources/Core/Wormhole/Wormhole.docc/RulesOfTheLease.md.
 *
 * One statement marked `atomic` is one system call (with the decision that follows from its
 * result), so every interleaving of system calls is explored.  A suspended client is one that does
 * not move while others do.  A client may be killed at every step: the kernel closes its
 * descriptors, and the program is started again with new names for its staged files.
 *
 * Proved for every run, however long (updates, removals, leases, takeovers and kills are
 * unlimited; CLIENTS programs, DIRECTORIES lease directories that have a name at one moment):
 *   no lost update   an update replaces or removes the value that it has read (`stale`).  By
 *                    induction the number of successful updates equals the counter that they keep.
 *   one holder       two clients never act at once on leases that both still exist (`acting`).
 *                    This is stronger: a holder whose lease was removed can publish nothing.
 *   whole, in order  the file at value.plist was written to its end, was moved there by a holder,
 *                    and was never replaced before (`value`).
 * -DUPDATES=n        the same with an explicit counter and without `stale`: n successful updates,
 *                    each must leave the number of successes, and a reader that never locks must
 *                    see whole files with numbers that never fall.
 * -DWARM             a client may keep its lease open after a change: it looks at the directory's times
 *                    and unlocks. Its next change locks the same descriptor and looks again. If the
 *                    times are the same, no client has created or removed an entry or renamed the
 *                    directory, so it acts without a look at the path, at the marker and for leftovers.
 *                    Proved besides: no entry is left there then (`left`).
 * -DPROGRESS         all clients but the first may stop for ever at every step, with all their locks
 *                    (suspended) or without (killed).  Waiters take over only overdue leases, and
 *                    WRONG_BREAKS times others.  Under weak fairness there is always another
 *                    successful update, and there is no state in which no client can move; no claim
 *                    is made about which client gets through.  (Without this switch the second part
 *                    is empty, because being killed is a move.)
 *
 * Each of these drops one rule, to show that the model notices; -DONLY_UPDATES leaves out the
 * property of one holder, to show that an update gets lost:
 * -DDROP_RULE_2        rule 2: stages through the path `held`, not through the lease's descriptor
 * -DDROP_RULE_5        rule 5: acts as holder without clearing `broken-*`
 * -DDROP_UNTIL_GONE    rule 4: clears without repeating: continues although rmdir said ENOTEMPTY
 * -DMARK_FIRST         rule 5: creates the marker before clearing
 * -DMARK_BY_PATH       rule 5: creates the marker through the path `held`
 * -DDROP_TAKE_AWAY     (PROGRESS) rule 3: waits for a stopped holder instead of taking over
 * -DDROP_HELP          (PROGRESS) rule 5: waits for a stopped breaker instead of helping
 * -DDROP_INODE_CHECK   rule 1: does not check that `held` still names the locked directory.  No
 *                      fault is found: the marker and the descriptor already refuse such a holder.
 * -DDROP_TIMES         (WARM) acts on a lease that it kept, whatever its times are
 * -DDROP_LOCK          (WARM) acts on a lease that it kept without locking it again
 *
 * Abstracted: content (a file is empty, whole, or replaced; no program writes to a published file;
 * a blind write is an update that ignores its read), durability, time (a lease may be taken over at
 * any moment, rightly or wrongly), how an overdue holder is recognized, names (`broken-<n>` and
 * staged names never repeat), inode numbers (a descriptor keeps its own), and hostile or failing
 * file systems.  A removed directory is one value, GONE, for all clients that have it open.
 */

#ifndef CLIENTS
#define CLIENTS 3
#endif
#ifndef DIRECTORIES
#define DIRECTORIES 3
#endif
#ifndef WRONG_BREAKS
#define WRONG_BREAKS 1
#endif

#define BIT(n) (1 << (n))
#define GONE 14
#define NONE 15

/* The directories inside `lease/`.  A slot is used again once its directory was removed. */
#define FREE   0
#define HELD   1
#define BROKEN 2
byte named[DIRECTORIES];            /* what path names it */
byte held = NONE;                   /* the slot that path `held` names */
byte entries[DIRECTORIES];          /* staged entries in it: one bit for each client */
byte clean;                         /* those with the marker in it: one bit for each slot */
byte lockedBy[DIRECTORIES] = NONE;  /* the client with flock(LOCK_EX) on it */

/* What each client holds. */
byte lease[CLIENTS] = NONE;         /* the slot its descriptor stands for, or GONE */
byte todo[CLIENTS];                 /* broken directories it waits for: one bit for each slot */
byte draft[CLIENTS];                /* the file behind its staged entry */

/* The file at value.plist. */
#define ABSENT   0
#define EMPTY    1
#define WHOLE    2
#define REPLACED 3
byte value = ABSENT;

byte acting;                        /* clients that passed the marker: one bit for each */
#ifdef UPDATES
byte number;                        /* the counter in value.plist; a removal counts as an update */
byte successes;
byte counted[CLIENTS];              /* the counter that each client has read */
#else
byte stale;                         /* clients whose value was replaced since: one bit for each */
#endif
#ifdef WARM
byte quiet;                         /* clients whose kept directory is as they left it: one bit for each */
#endif
#ifdef PROGRESS
byte stopped;                       /* clients that will never move again, with their locks */
byte wrongBreaks = WRONG_BREAKS;
#endif

hidden byte k;

#if DIRECTORIES > 3
#define room   (named[0] == FREE || named[1] == FREE || named[2] == FREE || named[3] == FREE)
#define broken ((named[0] == BROKEN) | (named[1] == BROKEN) << 1 | (named[2] == BROKEN) << 2 \
                | (named[3] == BROKEN) << 3)
#else
#define room   (named[0] == FREE || named[1] == FREE || named[2] == FREE)
#define broken ((named[0] == BROKEN) | (named[1] == BROKEN) << 1 | (named[2] == BROKEN) << 2)
#endif

#define has(set, n)     ((set) & BIT(n))
#define add(set, n)     set = set | BIT(n)
#define drop(set, n)    set = set & ~BIT(n)
#define mine            lease[me]
#define exists          (mine < DIRECTORIES)

/* A change of directory d, which its times show. */
#ifndef WARM
#define TOUCH(d)
#elif CLIENTS > 2
#define TOUCH(d) quiet = quiet & ~((lease[0] == d) | (lease[1] == d) << 1 | (lease[2] == d) << 2);
#else
#define TOUCH(d) quiet = quiet & ~((lease[0] == d) | (lease[1] == d) << 1);
#endif
#ifdef DROP_TIMES
#define isQuiet true
#else
#define isQuiet has(quiet, me)
#endif

/* The directory that a staged entry is created in and published from. */
#ifdef DROP_RULE_2
#define staging         (held == NONE -> GONE : held)
#define staged          (held != NONE && has(entries[held], me))
#define canStage        (held != NONE)
#else
#define staging         mine
#define staged          (exists && has(entries[mine], me))
#define canStage        exists
#endif

inline makeDirectory() {
  k = 0;
  do
  :: named[k] != FREE -> k++
  :: else -> break
  od;
  named[k] = HELD;
  held = k
}

/* rmdir of slot d succeeded: open descriptors refer to a directory that accepts no entry. */
inline removeDirectory(d) {
  named[d] = FREE;
  lockedBy[d] = NONE;
  k = 0;
  do
  :: k < CLIENTS ->
     if
     :: lease[k] == d -> lease[k] = GONE
     :: else
     fi;
     drop(todo[k], d);
     k++
  :: else -> break
  od
}

inline takeAway() {
  TOUCH(held)
  add(todo[me], held);
  named[held] = BROKEN;
  held = NONE
}

inline forgetChange() {
  todo[me] = 0;
  draft[me] = ABSENT;
  found = false;
  drop(acting, me);
#ifdef UPDATES
  counted[me] = 0
#else
  drop(stale, me)
#endif
}

/* Closing the descriptor releases the lease; the client drops all its knowledge. */
inline closeLease() {
  if
  :: exists && lockedBy[mine] == me -> lockedBy[mine] = NONE
  :: else
  fi;
  mine = NONE;
#ifdef WARM
  drop(quiet, me);
#endif
  forgetChange()
}

inline becomeHolder() {
#ifndef ONLY_UPDATES
  k = 0;
  do
  :: k < CLIENTS ->
     assert(!exists || !has(acting, k) || lease[k] == GONE);
     k++
  :: else -> break
  od;
#endif
  add(acting, me)
}

inline readValue() {
  found = (value != ABSENT);
#ifdef UPDATES
  counted[me] = number
#else
  drop(stale, me)
#endif
}

/* The ghost of every change of value.plist, checked before it takes effect. */
inline replaceWhatWasRead() {
#ifdef UPDATES
  number = counted[me] + 1;
  successes++;
  assert(number == successes);
#else
  assert(!has(stale, me));
  stale = (BIT(CLIENTS) - 1) & ~BIT(me);
#endif
  assert(found == (value != ABSENT))
}

#ifdef UPDATES
#define mayPublish (successes < UPDATES)
#else
#define mayPublish true
#endif

#ifdef PROGRESS
#define OR_STOPS \
  :: atomic { me != 0 -> add(stopped, me); goto end_stopped } \
  :: atomic { me != 0 -> closeLease(); goto end_stopped }
#else
#define OR_STOPS \
  :: atomic { true -> closeLease(); goto idle }
#endif

/* One step of clearing the broken directory d, whose name is never used again. */
#define UNLINK(d, c) \
  :: atomic { has(todo[me], d) && has(entries[d], c) -> TOUCH(d) drop(entries[d], c); goto clearing }
#if CLIENTS > 2
#define UNLINK_THIRD(d) UNLINK(d, 2)
#else
#define UNLINK_THIRD(d)
#endif
#ifdef DROP_UNTIL_GONE
#define NOT_EMPTY(d) \
  :: atomic { has(todo[me], d) && entries[d] != 0 -> drop(todo[me], d); goto clearing }
#else
#define NOT_EMPTY(d)
#endif
#ifdef DROP_HELP
#define helping (mine == NONE)
#else
#define helping true
#endif
#define CLEAR(d) \
  :: atomic { helping && has(todo[me], d) && has(clean, d) -> TOUCH(d) drop(clean, d); goto clearing } \
  UNLINK(d, 0) \
  UNLINK(d, 1) \
  UNLINK_THIRD(d) \
  NOT_EMPTY(d) \
  :: atomic { helping && has(todo[me], d) && !has(clean, d) && entries[d] == 0 -> \
       removeDirectory(d); goto clearing }

proctype Client(byte me) {
  bool found;                       /* there was a value when it was read */
#ifdef WARM
  bool left;
#endif

idle:
#ifdef WARM
  if
  :: atomic { mine != NONE -> goto warm }
  :: atomic { mine != NONE -> closeLease() }                        /* or forgets it */
  :: atomic { mine == NONE }
  OR_STOPS
  fi;
#endif
  if
  :: atomic { held != NONE -> mine = held; goto opened }
  :: atomic { held == NONE && room -> makeDirectory(); goto idle }
#ifdef PROGRESS
  :: atomic { wrongBreaks > 0 && held != NONE -> wrongBreaks--; takeAway(); goto clearing }
  OR_STOPS
#else
  :: atomic { held != NONE -> takeAway(); goto clearing }
  :: atomic { broken != 0 -> todo[me] = broken; goto clearing }     /* any client may help */
#endif
  fi;

opened:                             /* flock(LOCK_EX | LOCK_NB) */
  if
  :: atomic { !exists -> closeLease(); goto idle }
  :: atomic { exists && lockedBy[mine] == NONE -> lockedBy[mine] = me }
#ifdef PROGRESS
  :: atomic { exists && lockedBy[mine] != NONE && has(stopped, lockedBy[mine]) ->
       closeLease(); goto overdue }
  :: atomic { exists && lockedBy[mine] != NONE && !has(stopped, lockedBy[mine]) ->
       closeLease(); goto idle }
#else
  :: atomic { exists && lockedBy[mine] != NONE -> closeLease(); goto idle }
#endif
  OR_STOPS
  fi;

locked:                             /* does the path still name the locked directory? */
#ifndef DROP_INODE_CHECK
  if
  :: atomic { held == mine }
  :: atomic { held != mine -> closeLease(); goto idle }
  OR_STOPS
  fi;
#endif

#ifdef WARM
  goto look;

warm:                               /* flock(LOCK_EX | LOCK_NB) on the directory that it has open */
  if
  :: atomic { !exists -> closeLease(); goto idle }
#ifdef DROP_LOCK
  :: atomic { exists }
#else
  :: atomic { exists && lockedBy[mine] == NONE -> lockedBy[mine] = me }
  :: atomic { exists && lockedBy[mine] != NONE -> closeLease(); goto idle }
#endif
  OR_STOPS
  fi;

  if                                /* fstat: are its times those at the release? */
  :: atomic { exists && isQuiet ->
       left = entries[mine] != 0;
       assert(!left);
       drop(quiet, me);
       becomeHolder();
       goto holding }
  :: atomic { !exists || !isQuiet -> closeLease(); goto idle }
  OR_STOPS
  fi;
#endif

look:                               /* is the marker there? */
  if
  :: atomic { exists && has(clean, mine) -> becomeHolder(); goto holding }
#ifdef MARK_FIRST
  :: atomic { exists && !has(clean, mine) -> TOUCH(mine) add(clean, mine) }
  :: atomic { !exists -> closeLease(); goto idle }
#else
  :: atomic { !exists || !has(clean, mine) }
#endif
  OR_STOPS
  fi;

list:                               /* which broken-* are there? */
  if
#ifdef DROP_RULE_5
  :: todo[me] = 0
#else
  :: todo[me] = broken
#endif
  OR_STOPS
  fi;

clearing:                           /* unlink their entries and rmdir, until they are gone */
  if
  CLEAR(0)
  CLEAR(1)
  CLEAR(2)
#if DIRECTORIES > 3
  CLEAR(3)
#endif
  :: atomic { todo[me] == 0 && !exists -> closeLease(); goto idle } /* not a holder, or ENOENT */
#ifdef MARK_BY_PATH
  :: atomic { todo[me] == 0 && exists && held != NONE -> TOUCH(held) add(clean, held); becomeHolder() }
  :: atomic { todo[me] == 0 && exists && held == NONE -> closeLease(); goto idle }
#else
  :: atomic { todo[me] == 0 && exists -> TOUCH(mine) add(clean, mine); becomeHolder() }
#endif
  OR_STOPS
  fi;

holding:                            /* unlink a dead predecessor's entries, then stage */
  if
  :: atomic { exists && entries[mine] != 0 -> TOUCH(mine)
       entries[mine] = entries[mine] & (entries[mine] - 1); goto holding }
  :: atomic { (!exists || entries[mine] == 0) && canStage ->
       TOUCH(staging) add(entries[staging], me); draft[me] = EMPTY }
  :: atomic { (!exists || entries[mine] == 0) && !canStage -> closeLease(); goto idle }
  OR_STOPS
  fi;

read:
  if
  :: atomic { true -> readValue() }
  OR_STOPS
  fi;


write:                              /* the new content; or rename value.plist into the lease */
  if
  :: atomic { true -> draft[me] = WHOLE }
  :: atomic { found && canStage && mayPublish ->
       replaceWhatWasRead();
       value = ABSENT; draft[me] = REPLACED; TOUCH(staging) add(entries[staging], me); goto published }
  :: atomic { found && !canStage -> closeLease(); goto idle }       /* leaseLost */
  OR_STOPS
  fi;

publish:                            /* renameat2: EXCHANGE if there is a value, else NOREPLACE */
  if
  :: atomic { staged && mayPublish ->
       replaceWhatWasRead();
       value = draft[me];
       assert(value == WHOLE);
       if
       :: found -> draft[me] = REPLACED
       :: else -> TOUCH(staging) drop(entries[staging], me)
       fi }
  :: atomic { !staged || !mayPublish -> closeLease(); goto idle }   /* leaseLost */
  OR_STOPS
  fi;

published:                          /* unlink the old file */
progress_published:
  if
  :: atomic { staged -> TOUCH(staging) drop(entries[staging], me) }
  :: atomic { !staged }
  OR_STOPS
  fi;

release:
#ifdef WARM
  if                                /* fstat, and LOCK_UN */
  :: atomic { exists -> add(quiet, me) }
  :: atomic { true -> closeLease(); goto idle }
  OR_STOPS
  fi;
  atomic {
    if
    :: exists && lockedBy[mine] == me -> lockedBy[mine] = NONE
    :: else
    fi;
    forgetChange();
    goto idle }
#else
  atomic { true -> closeLease(); goto idle }
#endif

#ifdef PROGRESS
overdue:                            /* seen a moment ago: `held` may be another directory now */
  if
#ifndef DROP_TAKE_AWAY
  :: atomic { held != NONE -> takeAway(); goto clearing }
#else
  :: atomic { held != NONE -> goto idle }
#endif
  :: atomic { held == NONE -> goto idle }
  OR_STOPS
  fi;

end_stopped:
  false
#endif
}

#ifdef UPDATES
/* Reads at any time, without a lock. */
proctype Reader() {
  byte last;

  do
  :: atomic { value != ABSENT && number != last ->
       assert(value == WHOLE);
       assert(number > last);
       last = number }
  od
}
#endif

init {
  atomic {
    k = 0;
    do
    :: k < CLIENTS -> run Client(k); k++
    :: else -> break
    od;
#ifdef UPDATES
    run Reader()
#endif
  }
}
