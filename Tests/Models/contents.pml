/*
 * Contents: coordinated access to a directory that is deleted, moved, replaced or published, against
 * access to items in it.
 *
 * One statement marked `atomic` is one system call (with the decision that follows from its
 * result), or an action that files.pml proves to be like one: making a claim, and publishing if the
 * claim still exists.  Of the directories that replace each other at one place only the last one has
 * a name; a replaced one remains for the processes that have an item in it open.
 *
 * Proved for every run, however long (INSIDERS that change, and a reader of, ITEMS in the
 * directory; one process that replaces it):
 *   kept             nothing is published into a directory that was replaced, nor into one after
 *                    its entries were compared with its replacement (`lost`).
 *   whole read       the directory is not replaced while a process reads in it, unless the reader
 *                    was suspended (`unasked`).
 *   no deadlock      there is no state in which no process can move; an insider wants ITEMS items at
 *                    once.
 * -DPROGRESS         no claim is overdue: under weak fairness the directory is replaced again and
 *                    again, while insiders come and go.
 *
 * Each of these drops one rule, to show that the model notices:
 * -DDROP_CONTAINING    an insider does not look for a claim of the contents
 * -DCONTAINING_FIRST   an insider looks for it before it makes its own claim
 * -DDROP_PLACE         an insider does not check that the directory is still in its place
 * -DPLACE_FIRST        it checks this before it looks for a claim of the contents
 * -DPASS_OVERDUE       overdue claims inside are passed by, not taken over
 * -DKEEP_PASSED        a process that claims the contents, gives way to a directory further up and
 *                      claims them again relies on its earlier look
 * -DKEEP_ABOVE         an insider or a reader that has seen no site above relies on that although an
 *                      event was reported since
 * -DKEEP_OTHERS        an insider that gives way keeps its other items in the directory
 *
 * Abstracted: leases, names and sites (files.pml), the walk (one look at each item), the entries
 * (a change before they are compared is a conflict, and then nothing is replaced: the model replaces
 * the directory all the same), which claims are overdue, directories in between (each is checked
 * like this one).
 */

#ifndef INSIDERS
#define INSIDERS 2
#endif
#ifndef ITEMS
#define ITEMS 2
#endif
#define READER INSIDERS

#define BIT(n) (1 << (n))
#define has(set, n)  ((set) & BIT(n))
#define add(set, n)  set = set | BIT(n)
#define drop(set, n) set = set & ~BIT(n)

bool contents;                /* the contents are claimed */
bool above;                   /* those of a directory further up are */
bool site;                    /* there is one beside the directory; it is made before the claim */
byte known;                   /* those that have seen no site there, and no event since */
byte claims[ITEMS];           /* the claims of the item: a bit for each insider, and for a reader */
byte inside;                  /* those whose site, or item, is in the directory that has the name */

/* Ghosts. */
bool compared;                /* the entries; nobody looks at them again before the replacement */
bool reading;
bool excused;
bool suspended;

/* A claim in the directory that has the name, by an insider that changes an item. */
#define isClaimed(i) ((claims[i] & inside & ~BIT(READER)) != 0)
#define isRead(i)    (has(claims[i], READER) && has(inside, READER))

/* A look at the directory above, which is watched before that. */
inline remember() {
  if
  :: !site -> add(known, me)
  :: else
  fi
}

proctype Replacer() {
  byte passed;                /* items that have been checked */
  byte i;
  bool unasked;

idle:
  atomic { !above -> site = true }
#ifndef KEEP_ABOVE
  atomic { true -> known = 0 }                    /* the event comes before mkdir returns */
#endif
  atomic { !above -> contents = true }
#ifndef KEEP_PASSED
  passed = 0;
#endif
looking:
  if
  :: atomic { above -> contents = false; site = false; goto idle }
  :: atomic { !above }
  fi;
  i = 0;
  do
  :: i < ITEMS && has(passed, i) -> i++
  :: i < ITEMS && !has(passed, i) ->
     if
     :: atomic { !isClaimed(i) && (!isRead(i) || suspended) -> add(passed, i) }
#ifdef PASS_OVERDUE
     :: atomic { isClaimed(i) -> add(passed, i) }
#elif !defined(PROGRESS)
     :: atomic { isClaimed(i) -> claims[i] = claims[i] & (BIT(READER) | ~inside) }
#endif
     :: atomic { above -> contents = false; site = false; goto idle }
     fi;
     i = 0
  :: i == ITEMS -> break
  od;
  if
  :: atomic { above -> contents = false; site = false; goto idle }
  :: atomic { !above }
  fi;
  atomic { true -> compared = true }
  atomic { true ->
    unasked = reading && has(inside, READER) && !excused;
    assert(!unasked);
    inside = 0;
    compared = false }
progress_replaced:
  passed = 0;
  atomic { true -> contents = false; site = false; goto idle }
}

/* A process that sometimes claims the directory further up. */
proctype Above() {
end_:
  atomic { true -> above = true }
  atomic { true -> above = false; goto end_ }
}

proctype Insider(byte me; byte first) {
  byte i;
  bool lost;

idle:
  i = first;
waiting:
#ifdef CONTAINING_FIRST
  atomic { !contents }
#endif
opening:
  if                          /* the site; with several items, all in one directory */
  :: atomic { i == first -> add(inside, me) }
  :: atomic { i != first }
  fi;
  /* the present claims, and then its own */
  atomic { (claims[i] & inside & ~BIT(me) & ~BIT(READER)) == 0 || !has(inside, me) ->
           add(claims[i], me) }
#ifdef PLACE_FIRST
  if
  :: atomic { has(inside, me) }
  :: atomic { !has(inside, me) -> goto giveUp }
  fi;
#endif
#if !defined(DROP_CONTAINING) && !defined(CONTAINING_FIRST)
  if
  :: atomic { !has(known, me) && contents ->
       drop(claims[i], me);
#ifndef KEEP_OTHERS
       goto giveUp
#endif
     };
     atomic { !contents -> goto opening }
  :: atomic { !has(known, me) && !contents -> remember() }
  :: atomic { has(known, me) }
  fi;
#endif
#if !defined(DROP_PLACE) && !defined(PLACE_FIRST)
  if
  :: atomic { has(inside, me) }
  :: atomic { !has(inside, me) -> goto giveUp }
  fi;
#endif
  i++;
  if
  :: i < ITEMS -> goto opening
  :: else
  fi;
publishing:
  i--;
  atomic {
    if
    :: has(claims[i], me) ->
       lost = !has(inside, me) || compared;
       assert(!lost);
       drop(claims[i], me)
    :: else                   /* overtaken */
    fi }
  if
  :: i > first -> goto publishing
  :: else -> goto idle
  fi;

giveUp:
  i = 0;
  do
  :: i < ITEMS -> atomic { true -> drop(claims[i], me) } i++
  :: else -> break
  od;
  atomic { !contents -> goto idle }
}

proctype Reader(byte me) {
idle:
  atomic { true -> excused = false; add(inside, READER); add(claims[0], READER) }
looking:
  if
  :: atomic { !has(known, me) && contents -> drop(claims[0], READER) };
     atomic { !contents -> goto idle }
  :: atomic { !has(known, me) && !contents -> remember() }
  :: atomic { has(known, me) }
  :: atomic { true -> suspended = true; excused = true }; suspended = false; goto looking
  fi;
placing:
  if
  :: atomic { has(inside, READER) -> reading = true }
  :: atomic { !has(inside, READER) -> drop(claims[0], READER); goto idle }
  :: atomic { true -> suspended = true; excused = true }; suspended = false; goto placing
  fi;
reading_:
  if
  :: atomic { true -> reading = false; drop(claims[0], READER); goto idle }
  :: atomic { true -> suspended = true; excused = true }; suspended = false; goto reading_
  fi
}

init {
  atomic {
    run Replacer();
#ifndef PROGRESS
    run Above();
    run Reader(READER);
#endif
    run Insider(0, 0);
#if INSIDERS > 1
    run Insider(1, ITEMS - 1)
#endif
  }
}
