/*
 * Inherited claims: rules 6 and 7 of HowAccessWorks.
 *
 * A wrapper (`wormhole lock`) has claimed an item for work on the item itself.  It starts a program,
 * which inherits the claim's descriptor and may start another one; then it declares the program as the
 * claim's owner.  The claim is locked as long as a process has the descriptor.  A taker wants the item.
 * Wrapper, program and what that starts may be stopped, continued and killed at every step; so may the
 * taker be killed, after which another one begins.  A kill does not end its target in the same step: a
 * process that ran may do any number of further steps until its end, also start another one.
 *
 * One statement marked `atomic` is one system call.  The programs read the item and write it back later,
 * and so does the taker.
 *
 * Proved:
 *   no lost update   no process writes what it has read before the other side wrote (`stale`).
 * Assumed: nobody takes the claim away between the wrapper's look at it and its declaration of the
 * program, some hundred microseconds in which it would have to be stopped (-DSTOPS_AT_START shows why).
 *
 * Each of these drops a rule, to show that the model notices:
 * -DDROP_INHERITANCE  the program does not inherit the claim
 * -DDROP_KILL         the claim is taken away from stopped heirs without killing them
 * -DDROP_WAIT         they are killed, and their end is not waited for
 * -DDROP_LAST         the wrapper lets go when its program has ended, and not when the last heir has
 * -DKILL_DECLARED     only the declared program is killed, not what it has started
 * -DKILL_ONCE         those are killed that are seen at one look, not those that they start meanwhile
 * -DDROP_DECLARING    the wrapper stays the declared owner, so a take-over does not notice the start
 * -DDROP_LOOK         the wrapper does not look, before it starts the program, whether it has the claim
 * -DSTOPS_AT_START    the wrapper is stopped, and loses the claim, between that look and the start
 *
 * Abstracted: daemons that are left behind on purpose, which close the descriptor; what has no descriptor
 * (the taker finds it as a child of an heir or of the wrapper); the site's lease (files.pml); terms (a program that runs is taken for in time); heirs of
 * other users, which cannot be killed and keep the claim; the deadline of waiting for their end.
 */

#define WRAPPER 0
#define PROGRAM 1
#define STARTED 2
#define TAKER   3
#define NOBODY  7
#define BIT(n) (1 << (n))
#define has(set, n)  (((set) & BIT(n)) != 0)
#define add(set, n)  set = set | BIT(n)
#define drop(set, n) set = set & ~BIT(n)

byte alive = BIT(WRAPPER);
byte stopped;
byte killed;                    /* those that have got SIGKILL, and will end */
byte open = BIT(WRAPPER);       /* who has the claim's descriptor */
byte declared = WRAPPER;
bool standing = true;           /* the claim has its name */
bool spawned;                   /* the program has started another one */
#ifdef STOPS_AT_START
#define atStart false
#else
bool atStart;                   /* between the wrapper's look and its declaration */
#endif
byte stale;                     /* who has read what was written over since */

#define heirs ((open & ~BIT(WRAPPER)) & alive)

inline writes(n) {
  assert(!has(stale, n));
  stale = (n == TAKER -> BIT(PROGRAM) | BIT(STARTED) : BIT(TAKER))    /* the two are one work */
}

inline ends(n) { drop(alive, n); drop(open, n); drop(stopped, n); drop(killed, n) }

/* Whether a process may do its next step: not while it is stopped, then it can only end, if it is killed. */
#define runs(n) (has(alive, n) && !has(stopped, n))

inline starts(does) {
#ifdef STOPS_AT_START
  skip
#else
  atStart = does
#endif
}

proctype Program(byte me) {
  if
  :: atomic { runs(me) -> drop(stale, me) }                           /* reads */
  :: atomic { has(killed, me) -> ends(me); goto over }
  fi;
  do
  :: atomic { runs(me) && me == PROGRAM && !spawned ->
       spawned = true;
       add(alive, STARTED);
       if
       :: has(open, me) -> add(open, STARTED)
       :: else
       fi;
       run Program(STARTED) }
  :: atomic { runs(me) -> writes(me); break }
  :: atomic { has(killed, me) -> ends(me); goto over }
  od;
  atomic { runs(me) || has(killed, me) -> ends(me) };
over:
  skip
}

active proctype wrapper() {
  if                            /* does the claim stand? */
  :: atomic { runs(WRAPPER) && standing -> starts(true) }
#ifdef DROP_LOOK
  :: atomic { runs(WRAPPER) && !standing -> starts(true) }
#else
  :: atomic { runs(WRAPPER) && !standing -> goto over }
#endif
  :: atomic { has(killed, WRAPPER) -> goto over }
  fi;
  atomic {                      /* clone and exec */
    runs(WRAPPER) || has(killed, WRAPPER) ->
    if
    :: has(killed, WRAPPER) -> starts(false); goto over
    :: else
    fi;
    add(alive, PROGRAM);
#ifndef DROP_INHERITANCE
    add(open, PROGRAM);
#endif
    run Program(PROGRAM) };
  if                            /* the rename of the claim */
#ifndef DROP_DECLARING
  :: atomic { runs(WRAPPER) && standing -> declared = PROGRAM; starts(false) }
#else
  :: atomic { runs(WRAPPER) && standing -> starts(false) }
#endif
  :: atomic { runs(WRAPPER) && !standing -> add(killed, PROGRAM); starts(false) }
  :: atomic { has(killed, WRAPPER) -> starts(false); goto over }
  fi;
  if                            /* it waits for the program, and lets go of the claim */
#ifdef DROP_LAST
  :: atomic { runs(WRAPPER) && !has(alive, PROGRAM) -> standing = false }
#else
  :: atomic { runs(WRAPPER) && !has(alive, PROGRAM) && heirs == 0 -> standing = false }
#endif
  :: atomic { has(killed, WRAPPER) }
  fi;
over:
  atomic { ends(WRAPPER) }
}

/* A claim is overdue when its declared owner is stopped or has ended, unless an heir runs that is not the
 * declared process (rule 6); and it is nobody's when nobody has its descriptor open. */
#define running(set) (set & alive & ~stopped & ~killed)
#ifdef DROP_DECLARING
#define isKept     false
#else
#define isKept     (!has(heirs, declared) && running(heirs) != 0)
#endif
#define isOverdue  (!running(BIT(declared)) && !isKept)
#define isRemovable ((open & alive) == 0 || isOverdue)

active proctype taker() {
  byte seen, owner;

looks:
  if
  :: atomic { !standing -> goto works }
  :: atomic { standing && isRemovable -> seen = heirs; owner = declared }
  fi;
#ifndef DROP_KILL
kills:
#ifdef KILL_DECLARED
  atomic { seen = seen & BIT(declared) };
#endif
  atomic { killed = killed | (seen & alive) };
#ifndef DROP_WAIT
  atomic { (seen & alive) == 0 };
#endif
#if !defined(KILL_ONCE) && !defined(KILL_DECLARED) && !defined(DROP_WAIT)
  if                            /* what they have started meanwhile */
  :: atomic { heirs == 0 }
  :: atomic { heirs != 0 -> seen = heirs; goto kills }
  fi;
#endif
#endif
  if                            /* the rename of the claim, by the name that it had */
  :: atomic { standing && declared == owner && !atStart -> standing = false }
  :: atomic { !standing || declared != owner -> goto looks }
  fi;
works:
  atomic { drop(stale, TAKER) };
  atomic { writes(TAKER) }
}

/* Signals come at any moment. */
active proctype signals() {
end:
  do
  :: atomic { has(alive, PROGRAM) -> add(stopped, PROGRAM) }
  :: atomic { has(alive, STARTED) -> add(stopped, STARTED) }
  :: atomic { has(alive, WRAPPER) && !atStart -> add(stopped, WRAPPER) }
  :: atomic { stopped != 0 -> stopped = 0 }
  :: atomic { has(alive, WRAPPER) && !atStart -> add(killed, WRAPPER) }
  :: atomic { has(alive, PROGRAM) -> add(killed, PROGRAM) }
  od
}
