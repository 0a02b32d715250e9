/*
 * Coordinated access to one item: a writer has the item's lease from before its copy to the end.
 *
 * "Rule <n>" is that of Sources/Core/Wormhole/Wormhole.docc/RulesOfTheLease.md.
 *
 * One statement marked `atomic` is one system call (with the decision that follows from its
 * result).  A suspended process is one that does not move while others do.  A writer may be killed
 * at every step: the kernel closes its descriptors, and it begins again with new names.
 *
 * While there are writers, a site is beside the item, and the lease is the directory `held/` in it.
 * The holder has locked it, and has a directory of its own in it, the entry.  Its name declares the
 * holder and says how it uses the item; the private copy is inside.  The copy is published by one
 * rename through the lease's descriptor (rule 2), which fails when the entry is gone.  Readers lock
 * the item itself.
 *
 * A lease is taken over in two steps, and no name is left of it.  The entry that declares the overdue
 * holder is put aside: moved out of the lease by the name that was seen, in one step.  Then `held/` is
 * removed, which succeeds only when it is empty, and a removed directory accepts no entry.  So there
 * is no older lease beside `held/`, and rule 5 needs no step.  Likewise any process may remove an
 * empty `held/` at any moment: its holder, if there is one, has not acted yet.
 *
 * Proved for every run, however long (accesses, takeovers and kills are unlimited; WRITERS and
 * READERS):
 *   no lost update   a publication replaces the file that its writer copied (`stale`).
 *   one holder       two writers never act at once on leases that both still exist (`acting`).
 *   whole read       nothing is published while a reader reads, unless the reader was suspended or
 *                    has passed by a publisher that was suspended or beyond its term (`unasked`).
 *   no deadlock      there is no state in which no process can move.
 * -DREMOVALS         a writer may also remove the item, by a rename into its entry, and make it again.
 * -DIN_PLACE         the last writer changes the item in place, while there is no reader: `unasked`
 *                    and `stale` hold for each of its changes.  With REMOVALS it may move it away.
 * -DBEHIND           accessors tell others what they are about to publish.  A reader that begins after
 *                    that reads what was published, unless the writer was taken over or passed by as
 *                    overdue (`promised`): it waits for the writers that were at work when it began
 *                    (`awaited`).
 * -DWARM             a writer may keep the lease after its access, open, but unlocked, and its empty
 *                    entry in it, under a name that declares nobody.  Its next access locks the same
 *                    descriptor and looks at the directory's times.  If they are the same, no other
 *                    writer was there (`left`), so it acts without a look at the site.
 * -DCOMPANIONS       the first two writers are accesses of one purpose in one process, and never wait
 *                    for each other: the second one shares the lease of the first, and has its own
 *                    entry.  Each compares the item before it publishes, and is refused if the other
 *                    one has changed it.
 * -DLITTER           each writer makes one access: when all have ended, there is no site (`left`).
 * -DPROGRESS         all writers but the first may stop for ever at every step with all their
 *                    locks.  Only the leases of stopped ones are taken over.  Under weak fairness the
 *                    first one publishes again and again: a process alone with stopped ones makes
 *                    progress.
 *
 * Each of these drops one rule, to show that the model notices; -DONLY_UPDATES leaves out the
 * property of one holder, to show that an update gets lost:
 * -DDROP_RULE_2             makes its entry through the path `held`, not through the descriptor
 * -DCOPY_BESIDE             has its copy beside the lease, where a takeover does not reach it
 * -DONE_NAME                (`damaged`) all entries have one name, so that a late accessor finds its
 *                           successor's copy at the path of its own
 * -DMOVE_AWAY               acts when `held/` has another name, and the entry is still in it
 * -DUNLINK                  (REMOVALS) removes the item by its path, not by a rename into its entry
 * -DDROP_ITEM_LOCK          publishes without waiting for readers
 * -DDROP_ANNOUNCING         passes by stopped readers without announcing the publication first
 * -DANY_STOPPED             passes by all readers when one of them is stopped
 * -DLOOK_FIRST              a reader looks for publishers before it locks the item
 * -DDROP_PLACE              a reader does not check that the file it has locked is still the item
 * -DDROP_SECOND_LOCK        a reader that finds the item locked, and then no publisher, continues
 *                           without a lock
 * -DREAD_BEHIND             (BEHIND) a reader does not wait for writers that work on their copies
 * -DUNLOCK_LAST             (IN_PLACE) gives up the entry before it unlocks the item; with readers
 *                           that try a second time only
 * -DDROP_COMPARE            (COMPANIONS) publishes whatever the other one has done
 * -DFIRST_UNLOCKS           (COMPANIONS) the first of them that ends releases the lease
 * -DKEEP_TRASH              (LITTER) leaves what was put aside to the process that did it
 * -DDROP_TIMES              (WARM) does not look at the times
 * -DDROP_LOCK               (WARM) acts on a lease that it kept without locking it again
 * -DDROP_TAKE_AWAY          (PROGRESS) waits for a stopped holder
 * -DDROP_UNDECLARED         (PROGRESS) waits for a stopped holder that has no entry
 * -DDROP_RMDIR              (PROGRESS) puts the entry aside and does not remove `held/`
 *
 * An access that gives up waiting does nothing: the lease has a holder then, who removes the site.
 *
 * Abstracted: the content, the copy and the treatment of directories; other purposes; locks of
 * programs that do not coordinate; time (a lease may be beyond its term at any moment); how an overdue
 * holder is recognized, and that one has ended; names (they never repeat); failing file systems;
 * directories, for which see contents.pml; programs that inherit a lease, for which see heirs.pml.
 */

#ifndef WRITERS
#define WRITERS 2
#endif
#ifndef READERS
#define READERS 1
#endif
#define PROCESSES (WRITERS + READERS)

#define BIT(n) (1 << (n))
#define has(set, n)  ((set) & BIT(n))
#define add(set, n)  set = set | BIT(n)
#define drop(set, n) set = set & ~BIT(n)

#define NONE 7
#define OPEN 0
#define GONE 1
#define AWAY 2

/* The site.  Once it is removed, open descriptors refer to a directory that accepts no entry. */
bool site;                    /* there is one beside the item */
byte visitors;                /* writers that have this site open, not a removed one */
#ifdef LITTER
bool trash;                   /* something that was put aside, to be removed by anybody */
byte ended;
#endif


/* The lease in it. */
bool held;                    /* there is one */
byte entries;                 /* entries in it: one bit for each writer, also of a dead one */
byte lockedBy = NONE;         /* the process with flock(LOCK_EX) on it, named by its first writer */
#ifdef COMPANIONS
byte users;                   /* companions with the descriptor that is locked */
#define process(n)   ((n) < 2 -> 0 : (n))
#define isWith(n, m) (process(n) == process(m))
/* Their process knows of those that have made their entry. */
#define mayJoin      (me < 2 && has(users & working, 1 - me))
#else
#define process(n)   (n)
#define isWith(n, m) false
#endif
#ifdef MOVE_AWAY
byte away;                    /* entries in those that were moved away */
#endif
#ifdef WARM
bool spare;                   /* a kept entry, which declares nobody */
byte quiet;                   /* writers whose kept lease is as they left it */
#endif

/* What each process holds. */
byte lease[PROCESSES] = NONE; /* a descriptor of the lease: OPEN, or GONE if that was removed */
byte working;                 /* writers that run and have made an entry, which may be gone */
byte publishing;              /* those whose entry announces that */

/* The item, and the locks on the current file; on the site, while the item is missing. */
#ifdef REMOVALS
bool item;
#else
#define item true
#endif
byte shared;                  /* LOCK_SH: one bit for each reader */
byte exclusiveBy = NONE;      /* LOCK_EX */
byte current;                 /* readers that have opened it */

/* Ghosts. */
byte stale;                   /* writers whose copied file was replaced since */
byte acting;                  /* holders that have made their entry */
byte reading;
byte suspended;               /* readers that do not move */
byte excused;                 /* readers that were suspended, or passed by an overdue publisher */
#ifdef PROGRESS
byte stopped;                 /* writers that will never move again, with their locks */
#endif
#ifdef BEHIND
byte told;                    /* writers whose accessors have told others */
byte promised;                /* of these, those that had before the reader began */
byte awaited;                 /* those that were at work when the reader began */
#endif

hidden byte k;

#define mine   lease[me]
#define isOpen (mine == OPEN)
#define here   has(visitors, me)
/* The entry, and with it the copy, is where the descriptor of the lease leads. */
#ifdef MOVE_AWAY
#define owns   (isOpen && has(entries, me) || mine == AWAY && has(away, me))
#else
#define owns   (isOpen && has(entries, me))
#endif

/* A change of the lease's directory, which its times show. */
#ifdef WARM
#define touch()  quiet = 0
#define hasSpare spare
#else
#define touch()  skip
#define hasSpare false
#endif
#ifdef DROP_TIMES
#define isQuiet true
#else
#define isQuiet has(quiet, me)
#endif
#define isEmpty (entries == 0 && !hasSpare)

#ifdef LITTER
#define isTrash      trash
#define putAside()   trash = true
#else
#define isTrash      false
#define putAside()   skip
#endif

#ifdef BEHIND
#define settle(n) drop(told, n); drop(promised, n); drop(awaited, n)
#define atWork    awaited
#else
#define settle(n) skip
#define atWork    0
#endif

#ifdef IN_PLACE
#define inPlace BIT(WRITERS - 1)
#else
#define inPlace 0
#endif

/* Open descriptors then refer to a directory that accepts no entry. */
inline removeLease(state) {
  held = false;
  lockedBy = NONE;
  touch();
  k = 0;
  do
  :: k < PROCESSES ->
     if
     :: lease[k] == OPEN -> lease[k] = state
     :: else
     fi;
     k++
  :: else -> break
  od
}

/* The first entry is put aside.  Its owner is overdue, as far as others know. */
inline takeAway() {
  k = 0;
  do
  :: has(entries, k) -> break
  :: else -> k++
  od;
  drop(entries, k);
  settle(k);
  putAside();
  touch()
}

/* The writer does not have an entry any more, as far as it knows. */
inline forgetEntry() {
  drop(working, me);
  drop(publishing, me);
  drop(acting, me);
  drop(stale, me);
  settle(me)
}

inline unlockLease() {
#ifdef COMPANIONS
  if
  :: me > 1 || has(users, me) ->
     drop(users, me);
     if
#ifdef FIRST_UNLOCKS
     :: isOpen && lockedBy == process(me) -> lockedBy = NONE
#else
     :: isOpen && lockedBy == process(me) && (me > 1 || users == 0) -> lockedBy = NONE
#endif
     :: else
     fi
  :: else
  fi
#else
  if
  :: isOpen && lockedBy == me -> lockedBy = NONE
  :: else
  fi
#endif
}

inline closeLease() {
  unlockLease();
  mine = NONE;
#ifdef WARM
  drop(quiet, me)
#endif
}

inline unlockItem() {
  if
  :: exclusiveBy == me -> exclusiveBy = NONE
  :: else
  fi
}

/* The kernel closes all descriptors of a killed writer. */
inline die() {
  closeLease();
  unlockItem();
  forgetEntry();
  drop(visitors, me)
}

inline becomeHolder() {
#ifndef ONLY_UPDATES
  k = 0;
  do
  :: k < WRITERS ->
     assert(!isOpen || !has(acting, k) || lease[k] == GONE || isWith(k, me));
     k++
  :: else -> break
  od;
#endif
  add(acting, me)
}

/* The file in the item's place was replaced, removed, or has changed. */
inline change() {
  assert(!has(stale, me));
  stale = (BIT(WRITERS) - 1) & ~BIT(me);
  unasked = reading & ~excused;
  assert(unasked == 0)
}

/* The locks are on the file that was the item until now. */
inline replaceFile() {
  current = 0;
  shared = 0;
  exclusiveBy = NONE
}

#ifdef DROP_ITEM_LOCK
#define readersAreOver    true
#else
#define readersAreOver    (shared == 0 && (exclusiveBy == NONE || exclusiveBy == me))
#endif
#ifdef ANY_STOPPED
#define readersAreStopped ((shared & suspended) != 0)
#else
#define readersAreStopped (shared != 0 && (shared & ~suspended) == 0)
#endif
/* A late publisher that is stopped, or will find that its entry is gone. */
#define lateHasIt         (shared == 0 && exclusiveBy != NONE && exclusiveBy != me)
#ifdef DROP_ANNOUNCING
#define announced true
#else
#define announced has(publishing | inPlace, me)
#endif

/* Whether there is a directory to make the entry in. */
#ifdef DROP_RULE_2
#define mayDeclare held
#else
#define mayDeclare isOpen
#endif
#ifdef COPY_BESIDE
#define mayPublish true
#elif defined(DROP_RULE_2)
#define mayPublish has(entries, me)
#else
#define mayPublish owns
#endif
#ifdef UNLINK
#define mayRemove true
#else
#define mayRemove mayPublish
#endif

/* Whether the holder of the lock is overdue, and whether a writer waits for it. */
#ifdef PROGRESS
#if defined(DROP_TAKE_AWAY)
#define isLate  false
#elif defined(DROP_UNDECLARED)
#define isLate  (lockedBy != NONE && has(stopped, lockedBy) && entries != 0)
#else
#define isLate  (lockedBy != NONE && has(stopped, lockedBy))
#endif
#define mayWait (lockedBy != NONE && !isLate)
#else
#define isLate  (lockedBy != NONE)
#define mayWait (lockedBy != NONE)
#endif

#ifdef PROGRESS
#define OR_DIES :: atomic { me != 0 -> add(stopped, me); goto end_stopped }
#elif defined(COMPANIONS)
#define OR_DIES :: atomic { me > 1 -> die(); goto idle }              /* two cannot end as one here */
#else
#define OR_DIES :: atomic { true -> die(); goto idle }
#endif

proctype Writer(byte me) {
  byte unasked;
#ifdef WARM
  bool left;
#endif
#ifdef ONE_NAME
  bool damaged;
#endif

idle:                           /* the site */
  if
  :: atomic { site -> add(visitors, me) }
  :: atomic { !site -> site = true; add(visitors, me) }
  OR_DIES
  fi;

opening:                        /* the lease */
  if
  :: atomic { !here -> goto idle }
#ifdef COMPANIONS
  :: atomic { mayJoin ->                                              /* and the site */
       mine = lease[1 - me];
       add(users, me);
       if
       :: has(visitors, 1 - me) -> add(visitors, me)
       :: else -> drop(visitors, me)
       fi;
       goto joining }
#endif
  :: atomic { here && held -> mine = OPEN }
  :: atomic { here && !held -> held = true; goto opening }
  OR_DIES
  fi;

locking:                        /* flock(LOCK_EX | LOCK_NB) */
  if
  :: atomic { !isOpen -> closeLease(); goto idle }
  :: atomic { isOpen && lockedBy == NONE -> lockedBy = process(me)
#ifdef COMPANIONS
       ;
       if
       :: me < 2 -> add(users, me)
       :: else
       fi
#endif
     }
  :: atomic { isOpen && isLate -> goto overdue }
  :: atomic { isOpen && mayWait -> closeLease(); drop(visitors, me); goto idle }
#ifndef PROGRESS
  :: atomic { isOpen && mayWait -> closeLease(); goto after }         /* the deadline has passed */
#endif
  OR_DIES
  fi;

declaring:                      /* after what a dead holder has left was put aside */
  if
  :: atomic { isOpen && entries != 0 -> takeAway(); goto declaring }
#ifdef WARM
  :: atomic { isOpen && spare -> spare = false; touch(); goto declaring }
#endif
  :: atomic { (!isOpen || isEmpty) && mayDeclare ->
       touch();
       add(entries, me);
       add(working, me);
       becomeHolder() }
  :: atomic { !isOpen && !mayDeclare -> closeLease(); goto idle }
  OR_DIES
  fi;

#ifdef COMPANIONS
  goto copying;
joining:
  if
  :: atomic { isOpen -> touch(); add(entries, me); add(working, me); becomeHolder() }
  :: atomic { !isOpen -> closeLease(); goto idle }
  fi;
#endif

#ifdef IN_PLACE
declared:
  if
  :: atomic { has(inPlace, me) -> goto waiting }
  :: atomic { !has(inPlace, me) }
  fi;
#endif

copying:                        /* then the accessor runs, or throws */
  if
  :: atomic { true -> drop(stale, me) }
#ifndef PROGRESS
  :: atomic { true -> goto leaving }
#endif
#ifdef BEHIND
  :: atomic { owns -> drop(stale, me); add(told, me) }
#endif
  OR_DIES
  fi;

#ifdef ONE_NAME
accessor:                       /* writes to the copy, by its path */
  if
  :: atomic { entries == 0 -> goto leaving }
  :: atomic { entries != 0 -> damaged = !has(entries, me); assert(!damaged) }
  OR_DIES
  fi;
#endif

waiting:                        /* for the readers */
  if
#ifdef REMOVALS
  :: atomic { !item }
#endif
  :: atomic { item && readersAreOver -> exclusiveBy = me }
  :: atomic { item && !readersAreOver && !announced ->
       if
       :: owns -> add(publishing, me); touch(); goto waiting
       :: else -> goto leaving                                        /* overtaken */
       fi }
  :: atomic { item && !readersAreOver && announced && (readersAreStopped || lateHasIt) }
#ifndef PROGRESS
  :: atomic { item && !readersAreOver && announced -> goto leaving }     /* the deadline */
#endif
  OR_DIES
  fi;

#ifdef IN_PLACE
changing:                       /* the item itself, until the entry is gone */
  if
  :: atomic { !has(inPlace, me) }
  :: atomic { has(inPlace, me) && owns -> drop(stale, me); change(); goto leaving }
#ifdef REMOVALS
  :: atomic { has(inPlace, me) && owns && item ->
       drop(stale, me); change(); item = false; replaceFile(); goto leaving }
#endif
  :: atomic { has(inPlace, me) && !owns -> goto leaving }
  OR_DIES
  fi;
#endif

#if defined(COMPANIONS) && !defined(DROP_COMPARE)
#define isConflict (me < 2 && has(stale, me))
#else
#define isConflict false
#endif
publishing_:                    /* the copy, out of the entry to the item's place, or the reverse */
  if
  :: atomic { mayPublish && isConflict -> goto leaving }
  :: atomic { mayPublish && !isConflict -> change();
#ifdef REMOVALS
       item = true;
#endif
       replaceFile(); touch()
#ifdef BEHIND
       drop(told, me);
       drop(promised, me);
#endif
     }
#ifdef REMOVALS
  :: atomic { mayRemove && item && !isConflict -> change(); item = false; replaceFile(); touch()
#ifdef BEHIND
       drop(told, me);
       drop(promised, me);
#endif
     }
#endif
  :: atomic { !mayPublish -> goto leaving }                           /* overtaken */
  OR_DIES
  fi;

progress_published:
#ifdef WARM
  if
  :: atomic { owns -> drop(entries, me); spare = true; touch(); forgetEntry(); goto keeping }
  :: atomic { true }
  OR_DIES
  fi;
#endif

leaving:                        /* unlock the item, then remove the entry, or put it aside */
#ifndef UNLOCK_LAST
  if
  :: atomic { true -> unlockItem() }
  OR_DIES
  fi;
#endif
  if
#ifdef MOVE_AWAY
  :: atomic { mine == AWAY -> drop(away, me); forgetEntry() }
#endif
  :: atomic { isOpen && has(entries, me) -> drop(entries, me); putAside(); touch(); forgetEntry() }
  :: atomic { !owns -> forgetEntry() }
  OR_DIES
  fi;
#ifdef UNLOCK_LAST
  if
  :: atomic { true -> unlockItem() }
  OR_DIES
  fi;
#endif

removing:                       /* the lease, by its path, if it is empty: then it has no holder */
  if
  :: atomic { here && held && isEmpty -> removeLease(GONE) }
  :: atomic { !here || !held || !isEmpty }
  OR_DIES
  fi;
  if
  :: atomic { true -> closeLease() }
  OR_DIES
  fi;
  if                            /* then the site, if that is empty */
  :: atomic { here && !held && !isTrash -> site = false; visitors = 0 }
#if defined(LITTER) && !defined(KEEP_TRASH)
  :: atomic { here && trash -> trash = false; goto removing }
#elif defined(KEEP_TRASH)
  :: atomic { here && trash }
#endif
  :: atomic { !here || held }
  OR_DIES
  fi;

after:
  atomic { true -> drop(visitors, me) }
#ifdef LITTER
  atomic { true -> add(ended, me); goto end_stopped }
#else
  goto idle;
#endif

#ifdef WARM
keeping:                        /* look at the times, then unlock */
  if
  :: atomic { isOpen -> add(quiet, me) }
  :: atomic { !isOpen -> goto leaving }
  OR_DIES
  fi;
  if
  :: atomic { true -> unlockItem() }
  OR_DIES
  fi;
  if
  :: atomic { true -> unlockLease() }
  OR_DIES
  fi;
  if                            /* a moment later, or at exit */
  :: atomic { isOpen && spare -> spare = false; touch(); goto leaving }
  :: atomic { !isOpen || !spare -> goto leaving }
#ifndef LITTER
#ifdef DROP_LOCK
  :: atomic { isOpen }
#else
  :: atomic { isOpen && lockedBy == NONE -> lockedBy = me }
  :: atomic { isOpen && lockedBy != NONE -> closeLease(); goto idle }
#endif
#endif
  OR_DIES
  fi;
  if                            /* fstat: are its times those at the release? */
  :: atomic { isOpen && isQuiet ->
       left = entries != 0;
       assert(!left) }
  :: atomic { !isOpen || !isQuiet -> closeLease(); goto idle }
  OR_DIES
  fi;
  if
  :: atomic { isOpen && spare ->
       spare = false;
       touch();
       add(entries, me);
       add(working, me);
       becomeHolder();
#ifdef IN_PLACE
       goto declared
#else
       goto copying
#endif
     }
  :: atomic { !isOpen || !spare -> closeLease(); goto idle }
  OR_DIES
  fi;
#endif

overdue:                        /* the holder of the lease that it has open */
#ifdef MOVE_AWAY
  if
  :: atomic { here && held -> away = entries; entries = 0; removeLease(AWAY); goto idle }
  :: atomic { !here || !held -> closeLease(); goto idle }
  OR_DIES
  fi;
#else
  if                            /* its entry is put aside */
  :: atomic { isOpen && entries != 0 -> takeAway(); goto overdue }
#ifdef WARM
  :: atomic { isOpen && spare -> spare = false; touch(); goto overdue }
#endif
  :: atomic { !isOpen || isEmpty }
  OR_DIES
  fi;
#ifndef DROP_RMDIR
  if                            /* then the lease is removed, by its path */
  :: atomic { here && held && isEmpty -> removeLease(GONE) }
  :: atomic { !here || !held || !isEmpty }
  OR_DIES
  fi;
#endif
  atomic { true -> closeLease(); goto idle }
#endif
#if defined(PROGRESS) || defined(LITTER)
end_stopped:
  false
#endif
}

#define OR_SUSPENDED(label) \
  :: atomic { true -> add(suspended, me); add(excused, me) }; \
     atomic { true -> drop(suspended, me) }; goto label

inline closeItem() {
  drop(shared, me);
  drop(current, me);
  drop(reading, me);
  drop(excused, me);
  mine = NONE
}

#define locked has(shared, me)
#ifdef LOOK_FIRST
#define unlocked false
#else
#define unlocked (has(current, me) && !locked)
#endif
/* The holders that a reader waits for, of those whose entry it sees.  An ended one does not count. */
#define inTheWay ((isOpen -> entries : 0) & working \
                  & (publishing | inPlace | atWork | (unlocked -> 255 : 0)))

proctype Reader(byte me) {
#ifdef DROP_SECOND_LOCK
#define isLeft false
#elif defined(UNLOCK_LAST)
  bool tried;
#define isLeft (unlocked && !tried)
#else
#define isLeft unlocked
#endif

#ifdef BEHIND
begin:
  atomic {
    promised = told;
#ifndef READ_BEHIND
    awaited = working
#endif
  }
#else
#define begin idle
#endif
idle:
  if
  :: atomic { item -> closeItem(); add(current, me) }
#ifdef REMOVALS
  :: atomic { !item -> closeItem() }
#endif
  OR_SUSPENDED(idle)
  fi;

#ifdef LOOK_FIRST
  if
  :: atomic { true -> mine = (held -> OPEN : NONE) }
  OR_SUSPENDED(idle)
  fi;
first:
  if
  :: atomic { inTheWay == 0 }
  :: atomic { inTheWay != 0 -> goto idle }
  OR_SUSPENDED(first)
  fi;
#endif

locking:
  if
  :: atomic { has(current, me) && exclusiveBy == NONE -> add(shared, me) }
  :: atomic { has(current, me) && exclusiveBy != NONE }
  :: atomic { !has(current, me) }
  OR_SUSPENDED(locking)
  fi;

#ifndef LOOK_FIRST
opening:                        /* the lease, by its path */
  if
  :: atomic { true -> mine = (held -> OPEN : NONE) }
  OR_SUSPENDED(opening)
  fi;

looking:
  if
  :: atomic { inTheWay != 0 -> goto idle }
#ifndef PROGRESS
  :: atomic { inTheWay != 0 -> add(excused, me) }            /* by an overdue publisher */
#endif
  :: atomic { inTheWay == 0 && isLeft ->
#ifdef UNLOCK_LAST
       tried = true; goto locking
#else
       goto idle
#endif
     }
  :: atomic { inTheWay == 0 && !isLeft -> mine = NONE }
  OR_SUSPENDED(looking)
  fi;
#endif

placing:                        /* is the opened file still the item? */
  if
#ifdef DROP_PLACE
  :: atomic { true -> add(reading, me) }
#else
  :: atomic { has(current, me) ->
       add(reading, me);
#ifdef BEHIND
       assert(promised == 0 || has(excused, me))
#endif
     }
#ifdef REMOVALS
  :: atomic { !has(current, me) && !item ->
#ifdef BEHIND
       assert(promised == 0 || has(excused, me))
#endif
     }
  :: atomic { !has(current, me) && item -> goto idle }
#else
  :: atomic { !has(current, me) -> goto idle }
#endif
#endif
  OR_SUSPENDED(placing)
  fi;

reading_:
#ifdef UNLOCK_LAST
  tried = false;
#endif
  if
  :: atomic { true -> closeItem(); goto begin }
  OR_SUSPENDED(reading_)
  fi
}

#ifdef LITTER
proctype Last() {
  bool left;

  atomic { ended == BIT(WRITERS) - 1 -> left = site; assert(!left) };
end_:
  false
}
#endif

init {
  atomic {
    k = 0;
    do
    :: k < WRITERS -> run Writer(k); k++
    :: else -> break
    od;
#ifdef LITTER
    run Last()
#else
    do
    :: k < PROCESSES -> run Reader(k); k++
    :: else -> break
    od
#endif
  }
}
