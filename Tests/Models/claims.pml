/*
 * Claims: coordinated access to one item, through private copies that are published in one step.
 *
 * One statement marked `atomic` is one system call (with the decision that follows from its
 * result).  A suspended process is one that does not move while others do.  A writer may be killed
 * at every step: the kernel closes its descriptors, and it begins again with new names.
 *
 * The site's lease is one fenced lock here, because lease.pml proves it (PASSING).  Its holder may
 * lose it at every moment, and notices that at its next rename (`fenced`).  Calls other than a
 * rename out of or into the lease succeed all the same, even the removal of `held/`, which may then
 * be a successor's.  The remains of breakers and dead holders block nothing, and go with the lease.
 *
 * Proved for every run, however long (accesses, takeovers and kills are unlimited; WRITERS and
 * READERS):
 *   no lost update   a publication replaces the file that its writer copied (`stale`).
 *   overtaken        a publisher has a claim that was not taken over (`overtaken`).
 *   whole read       nothing is published while a reader reads, unless the reader was suspended or
 *                    has passed by a publisher that was suspended or beyond its term (`unasked`).
 *   no deadlock      there is no state in which no process can move.
 * -DIN_PLACE         the last writer changes the item in place, while there is no reader: `unasked`
 *                    and `stale` hold for each of its changes.
 * -DWARM             a writer may keep the site after its access, with the lease's directory open, but
 *                    unlocked, and its empty claim in it.  Its next access locks that directory and
 *                    looks at its times.  If no other process has changed it since, no other has
 *                    made or taken over a claim, so it claims without a look at the site; and
 *                    likewise it publishes (`standing`, `looked`).  Others see an unused site, which
 *                    they may remove.
 * -DBEHIND           accessors tell others what they are about to publish.  A reader that begins after
 *                    that reads what was published, unless the writer was passed by as overdue
 *                    (`promised`): it waits for the writers that were at work when it began (`awaited`).
 * -DLITTER           each writer makes one access: when all have ended, there is no site (`left`).
 * -DPROGRESS         all writers but the first may stop for ever at every step with all their
 *                    locks and claims.  Only the claims and leases of stopped ones are taken over.
 *                    Under weak fairness the first one publishes again and again: a process alone
 *                    with stopped ones makes progress.
 *
 * Each of these drops one rule, to show that the model notices:
 * -DDROP_LEASE_AT_CLAIM     looks for others and makes its claim without the lease
 * -DDROP_LEASE_AT_PUBLISH   publishes without the lease
 * -DDROP_FENCE              renames as if the lease could not be lost (not through its descriptor)
 * -DDROP_STANDING           does not check, before it publishes, that its claim still exists
 * -DDROP_ITEM_LOCK          publishes without waiting for readers
 * -DDROP_ANNOUNCING         passes by stopped readers without announcing the publication first
 * -DANY_STOPPED             passes by all readers when one of them is stopped
 * -DLOOK_FIRST              a reader looks for publishers before it locks the item
 * -DDROP_PLACE              a reader does not check that the file it has locked is still the item
 * -DDROP_SECOND_LOCK        a reader that finds the item locked, and then no publisher, continues
 *                           without a lock
 * -DREAD_BEHIND             (BEHIND) a reader does not wait for writers that work on their copies
 * -DUNLOCK_LAST             (IN_PLACE) gives up the claim before it unlocks the item; with readers
 *                           that try a second time only
 * -DDROP_SECOND_LOOK        (LITTER) does not check again, after it had the lease, that all left
 * -DGIVE_UP_AT_ONCE         (LITTER) an access that gives up waiting leaves the site to others
 * -DDROP_TIMES              (WARM) does not look at the times
 * -DDROP_TAKE_AWAY          (PROGRESS) waits for a stopped writer's claim
 *
 * Abstracted: the content, the copy and the treatment of directories; purposes (all differ);
 * claims that share; the time for which a leaving access tries to get a lease that another holds
 * (here not at all, because the other one looks again); locks of programs that do not coordinate;
 * time (a claim or a lease may be beyond its term at any moment); names (they never repeat); failing
 * file systems; directories, for which see contents.pml.
 */

#ifndef WRITERS
#define WRITERS 2
#endif
#ifndef READERS
#define READERS 1
#endif

#define NONE   7
#define BIT(n) (1 << (n))
#define has(set, n)  ((set) & BIT(n))
#define add(set, n)  set = set | BIT(n)
#define drop(set, n) set = set & ~BIT(n)

/* The site.  Once it is removed, open descriptors refer to a directory that accepts no entry. */
bool site;                    /* there is one beside the item */
bool leaseDirectory;          /* `held/` in it */
byte claims;                  /* claim-…: one bit for each writer */
byte publishing;              /* those that have announced it */
bool abandoned;               /* the claim of a dead writer */
byte taken;                   /* overtaken-…, which the late owner removes */
byte trash;                   /* trash-…, which its owner is removing */
bool deadTrash;               /* the same of dead writers */
byte leaseBy = NONE;
byte visitors;                /* writers that have this site open, not a removed one */

/* The item: the locks on the current file. */
byte shared;                  /* LOCK_SH: one bit for each reader */
byte exclusiveBy = NONE;      /* LOCK_EX */
byte current;                 /* readers that have opened the current file */

/* Ghosts. */
byte stale;                   /* writers whose copied file was replaced since */
byte reading;
byte suspended;               /* readers that do not move */
byte excused;                 /* readers that were suspended, or passed by an overdue publisher */
#ifdef PROGRESS
byte stopped;                 /* writers that will never move again, with their locks and claims */
#endif
#ifdef LITTER
byte ended;
#endif
#ifdef BEHIND
byte told;                    /* writers whose accessors have told others */
byte promised;                /* of these, those that had before the reader began */
byte awaited;                 /* claims that were there when the reader began */
#endif
#ifdef WARM
byte touched;                 /* writers that find other times of `held/` than at their release */
#define touch() touched = BIT(WRITERS) - 1
#else
#define touch() skip
#endif

hidden byte k;

#define fenced     (leaseBy != me)
#define here       has(visitors, me)
#define others     (claims & ~BIT(me))
#define isUsed     (claims != 0 || taken != 0 || trash != 0 || deadTrash)
#ifdef PROGRESS
#define isOverdue(n) has(stopped, n)
#else
#define isOverdue(n) true
#endif

#ifdef BEHIND
#define settle(n) drop(told, n); drop(promised, n); drop(awaited, n)
#define atWork    (claims & awaited)
#else
#define settle(n) skip
#define atWork    0
#endif

#define endClaim(n) drop(claims, n); drop(publishing, n); settle(n)

/* The first claim of another writer that may be taken over. */
inline takeAway() {
  k = 0;
  do
  :: k < WRITERS && (k == me || !has(claims, k) || !isOverdue(k)) -> k++
  :: k < WRITERS && k != me && has(claims, k) && isOverdue(k) ->
     endClaim(k);
     add(taken, k);
     touch();
     break
  :: k == WRITERS -> break
  od
}

#ifdef PROGRESS
#define mayTakeAway (others & stopped)
#ifdef DROP_TAKE_AWAY
#define mayWait     (others != 0)
#else
#define mayWait     (others != 0 && mayTakeAway == 0)
#endif
#else
#define mayTakeAway others
#define mayWait     (others != 0)
#endif

/* A lease that is taken over is renamed. */
inline openLease() {
  if
  :: leaseBy != NONE && leaseBy != me -> touch()
  :: else
  fi;
  leaseBy = me
}

inline closeLease() {
  if
  :: leaseBy == me -> leaseBy = NONE
  :: else
  fi
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
  if
  :: has(claims, me) -> abandoned = true
  :: else
  fi;
  if
  :: has(taken | trash, me) -> deadTrash = true
  :: else
  fi;
  endClaim(me);
  drop(taken, me);
  drop(trash, me);
  drop(visitors, me);
  drop(stale, me)
}

inline removeSite() {
  site = false;
  leaseBy = NONE;
  visitors = 0
}

/* The file in the item's place was replaced, or has changed. */
inline change() {
  assert(!has(stale, me));
  stale = (BIT(WRITERS) - 1) & ~BIT(me);
  unasked = reading & ~excused;
  assert(unasked == 0)
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
/* A late publisher that is stopped, or will find that its claim is gone. */
#define lateHasIt         (shared == 0 && exclusiveBy != NONE && exclusiveBy != me)
#ifdef DROP_ANNOUNCING
#define announced true
#else
#define announced has(publishing | inPlace, me)
#endif
#ifdef IN_PLACE
#define inPlace BIT(WRITERS - 1)
#else
#define inPlace 0
#endif

#ifdef DROP_SECOND_LOOK
#define AGAIN after
#else
#define AGAIN removing
#endif

#ifdef PROGRESS
#define OR_DIES :: atomic { me != 0 -> add(stopped, me); goto end_stopped }
#else
#define OR_DIES :: atomic { true -> die(); goto idle }
#endif

#ifdef WARM
#ifdef DROP_TIMES
#define isTouched false
#else
#define isTouched has(touched, me)
#endif
/* Otherwise another process has it, or it is another directory, and its times differ. */
#define mayRelock (leaseBy == NONE && !isTouched)
#endif

proctype Writer(byte me) {
  byte unasked;
  bool overtaken;
#ifdef WARM
  bool isWarm, standing, looked;
#endif

idle:                           /* openOrMake */
#ifdef WARM
  isWarm = false;
#endif
  if
  :: atomic { site -> add(visitors, me) }
  :: atomic { !site -> site = true; leaseDirectory = false; add(visitors, me) }
  OR_DIES
  fi;

wanting:                        /* the lease, to claim */
  if
  :: atomic { !here -> goto idle }
#ifdef DROP_LEASE_AT_CLAIM
  :: atomic { here }
#else
  :: atomic { here && !leaseDirectory -> leaseDirectory = true; goto wanting }
#ifdef PROGRESS
  :: atomic { here && leaseDirectory && (leaseBy == NONE || has(stopped, leaseBy)) ->
       openLease() }
#else
  :: atomic { here && leaseDirectory -> openLease() }
#endif
#endif
  OR_DIES
  fi;

looking:                        /* which claims are there? */
  if
  :: atomic { others == 0 && !abandoned }
#ifdef DROP_LEASE_AT_CLAIM
  :: atomic { abandoned -> abandoned = false; deadTrash = true; goto looking }
  :: atomic { others != 0 -> goto idle }
#else
  :: atomic { abandoned && !fenced ->
       abandoned = false; deadTrash = true; touch(); goto looking }
#ifndef DROP_TAKE_AWAY
  :: atomic { mayTakeAway && !fenced -> takeAway(); goto looking }
#endif
  :: atomic { (others != 0 || abandoned) && fenced -> closeLease(); goto idle }
  :: atomic { mayWait && !fenced -> closeLease(); drop(visitors, me); goto waits }
#ifndef PROGRESS
  :: atomic { others != 0 -> goto givingUp }                          /* the deadline has passed */
#endif
#endif
  OR_DIES
  fi;

claiming:                       /* the rename out of the lease */
  if
#ifdef DROP_LEASE_AT_CLAIM
  :: atomic { here -> add(claims, me) }
  :: atomic { !here -> goto idle }
#elif defined(DROP_FENCE)
  :: atomic { here -> add(claims, me) }
  :: atomic { !here -> closeLease(); goto idle }
#else
  :: atomic { !fenced -> add(claims, me); touch() }
  :: atomic { fenced -> goto idle }
#endif
  OR_DIES
  fi;

claimed:
#ifdef WARM
  if
  :: atomic { !fenced && others == 0 && !abandoned -> drop(touched, me); isWarm = true }
  :: atomic { true }
  OR_DIES
  fi;
#endif
  if
  :: atomic { true -> closeLease() }
  OR_DIES
  fi;

#ifdef IN_PLACE
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
  :: atomic { has(claims, me) -> drop(stale, me); add(told, me) }
#endif
  OR_DIES
  fi;

waiting:                        /* for the readers */
  if
  :: atomic { readersAreOver -> exclusiveBy = me }
  :: atomic { !readersAreOver && !announced ->
       if
       :: has(claims, me) -> add(publishing, me); goto waiting
       :: else -> goto leaving                                        /* overtaken */
       fi }
  :: atomic { !readersAreOver && announced && (readersAreStopped || lateHasIt) }
#ifndef PROGRESS
  :: atomic { !readersAreOver && announced -> goto leaving }          /* the deadline has passed */
#endif
  OR_DIES
  fi;

#ifdef IN_PLACE
  if
  :: atomic { !has(inPlace, me) -> goto publishing_ }
  :: atomic { has(inPlace, me) }
  fi;
changing:                       /* as long as the claim was not taken over it is alone */
  if
  :: atomic { has(claims, me) -> drop(stale, me); change(); goto leaving }
  :: atomic { !has(claims, me) -> goto leaving }
  OR_DIES
  fi;
#endif

publishing_:                    /* the lease, to publish */
#ifdef WARM
  if
  :: atomic { isWarm && mayRelock -> leaseBy = me; isWarm = false }
  :: atomic { isWarm && !mayRelock -> isWarm = false; goto publishing_ }
  :: atomic { !isWarm -> goto opening }
  OR_DIES
  fi;
  if
  :: atomic { !isTouched ->
#ifndef DROP_TIMES
       standing = (has(claims, me) != 0);
       assert(standing);
#endif
       goto takingIn }
  :: atomic { isTouched -> closeLease() }
  OR_DIES
  fi;
opening:
#endif
  if
  :: atomic { !here -> goto leaving }                                 /* overtaken, all have left */
#ifdef PROGRESS
  :: atomic { here && (leaseBy == NONE || has(stopped, leaseBy)) ->
       openLease(); leaseDirectory = true }
#elif defined(DROP_LEASE_AT_PUBLISH)
  :: atomic { here }
#else
  :: atomic { here -> openLease(); leaseDirectory = true }
#endif
  OR_DIES
  fi;

checking:
  if
#ifdef DROP_STANDING
  :: atomic { true }
#else
  :: atomic { has(claims, me) }
  :: atomic { !has(claims, me) -> closeLease(); goto leaving }        /* overtaken */
#endif
  OR_DIES
  fi;

#if !defined(DROP_LEASE_AT_PUBLISH) && !defined(DROP_FENCE)
takingIn:                       /* the copy, out of the claim into the lease */
  if
  :: atomic { !fenced -> touch() }
  :: atomic { fenced -> goto waiting }
  OR_DIES
  fi;
#endif

movingOut:                      /* the copy, out of the lease to the item's place */
  if
#if defined(DROP_LEASE_AT_PUBLISH) || defined(DROP_FENCE)
  :: atomic { true ->
#else
  :: atomic { fenced -> goto leaving }                                /* overtaken */
  :: atomic { !fenced ->
#endif
       overtaken = !has(claims, me);
       change();
#if !defined(DROP_STANDING) && !defined(DROP_LEASE_AT_PUBLISH) && !defined(DROP_FENCE)
       assert(!overtaken);
#endif
       overtaken = false;
#ifdef BEHIND
       drop(told, me);
       drop(promised, me);
#endif
       current = 0;
       shared = 0;
       exclusiveBy = NONE;
       touch() }
  OR_DIES
  fi;

progress_published:             /* still under the lease: the empty claim is removed, or taken in */
  if
#ifdef WARM
  :: atomic { has(claims, me) && !fenced && others == 0 && !abandoned ->
       endClaim(me); touch(); goto keeping }
#endif
  :: atomic { has(claims, me) -> endClaim(me); goto dismantling }
  :: atomic { !has(claims, me) -> closeLease(); goto leaving }
  OR_DIES
  fi;

#ifdef WARM
keeping:                        /* look at the times, then unlock */
  if
  :: atomic { !fenced -> drop(touched, me); isWarm = true }
  :: atomic { fenced -> goto removing }
  OR_DIES
  fi;
  if
  :: atomic { true -> closeLease() }
  OR_DIES
  fi;
  if
  :: atomic { true -> isWarm = false; goto removing }        /* a moment later, or at exit */
#ifndef LITTER
  :: atomic { here && mayRelock -> leaseBy = me; isWarm = false }
  :: atomic { !(here && mayRelock) -> isWarm = false; goto wanting }
#endif
  OR_DIES
  fi;
  if
  :: atomic { !isTouched ->
#ifndef DROP_TIMES
       looked = (others == 0 && !abandoned);
       assert(looked);
#endif
       goto claiming }
  :: atomic { isTouched -> closeLease(); goto wanting }
  OR_DIES
  fi;
#endif

leaving:                        /* unlock the item, then rename the claim to trash-… */
#ifndef UNLOCK_LAST
  if
  :: atomic { true -> unlockItem() }
  OR_DIES
  fi;
#endif
  if
  :: atomic { has(claims | taken, me) ->
       endClaim(me); drop(taken, me); add(trash, me) }
  :: atomic { !has(claims | taken, me) -> goto removing }
  OR_DIES
  fi;
#ifdef UNLOCK_LAST
  if
  :: atomic { true -> unlockItem() }
  OR_DIES
  fi;
#endif
trashing:
  if
  :: atomic { true -> drop(trash, me) }
  OR_DIES
  fi;

removing:                       /* the site, unless it is in use */
  if
  :: atomic { !here -> goto after }                                   /* another one was quicker */
  :: atomic { here && deadTrash -> deadTrash = false; goto removing }
  :: atomic { here && !deadTrash && isUsed -> goto after }
  :: atomic { here && !isUsed }
  OR_DIES
  fi;
  if
  :: atomic { here && !leaseDirectory -> leaseDirectory = true; goto removing }
  :: atomic { here && leaseDirectory && leaseBy == NONE -> leaseBy = me }
  :: atomic { here && leaseBy != NONE -> goto after }        /* its holder will look again */
  :: atomic { !here -> goto after }
  OR_DIES
  fi;

dismantling:                    /* under the lease */
  if
  :: atomic { abandoned && !fenced ->
       abandoned = false; deadTrash = true; touch(); goto releasing }
  :: atomic { !isUsed && !abandoned -> leaseDirectory = false; leaseBy = NONE; touch() }
  :: atomic { isUsed -> goto releasing }
  :: atomic { fenced && !isUsed -> goto releasing }          /* the successor's is in use */
  OR_DIES
  fi;
  if
  :: atomic { here && !leaseDirectory && !isUsed && !abandoned -> removeSite(); goto after }
  :: atomic { !here -> goto after }
  :: atomic { leaseDirectory || isUsed || abandoned -> goto after }   /* the newcomer looks again */
  OR_DIES
  fi;
releasing:
  if
  :: atomic { true -> closeLease(); goto AGAIN }
  OR_DIES
  fi;

#if !defined(DROP_LEASE_AT_CLAIM) && !defined(PROGRESS)
givingUp:
  if
#ifdef GIVE_UP_AT_ONCE
  :: atomic { true -> closeLease(); goto after }
#else
  :: atomic { true -> closeLease(); goto removing }
#endif
  OR_DIES
  fi;
#endif

#ifndef DROP_LEASE_AT_CLAIM
waits:                          /* for the end of a claim, watching it */
#ifdef PROGRESS
  if
  :: atomic { !mayWait -> goto idle }
  OR_DIES
  fi;
#else
  goto idle;
#endif
#endif

after:
  atomic { true -> drop(visitors, me); drop(stale, me) }
#ifdef LITTER
  atomic { true -> add(ended, me); goto end_stopped }
#else
  goto idle;
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
  drop(excused, me)
}

#define locked has(shared, me)
#ifdef LOOK_FIRST
#define unlocked false
#else
#define unlocked (has(current, me) && !locked)
#endif
#define inTheWay (publishing | (claims & inPlace) | atWork | (unlocked -> claims : 0))

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
    awaited = claims
#endif
  }
#else
#define begin idle
#endif
idle:
  if
  :: atomic { true -> closeItem(); add(current, me) }
  OR_SUSPENDED(idle)
  fi;

#ifdef LOOK_FIRST
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

looking:
#ifndef LOOK_FIRST
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
  :: atomic { inTheWay == 0 && !isLeft }
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
  :: atomic { !has(current, me) -> goto idle }
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
    :: k < WRITERS + READERS -> run Reader(k); k++
    :: else -> break
    od
#endif
  }
}
