/*
 * The loss of power: what a reader finds of a value whose publications do not all wait for the disk.
 *
 * One statement marked `atomic` is one system call, as in lease.pml.  Publishers replace or remove the
 * value under its lease, which may be taken away at every step (`fenced`; lease.pml proves that one
 * lock); a process that is killed is one that does not move any more.  The power is cut at any moment,
 * CUTS times; then all processes begin again, and a reader reads while they do.  Or the file system alone
 * is lost and mounted again: what is kept then still has the name of this start of the machine.
 *
 * The disk: names reach it in the order in which they were given (everything up to now, at any moment;
 * fsync of the directory: at least everything up to the last exchange or removal).  Content reaches it
 * when somebody has waited for that, else perhaps.
 *
 * Changes are numbered in the order in which they are visible; a removal is one of them.
 * Proved:
 *   not damaged   a reader gets the whole content of a change, or sees none (`damaged`).
 *   not undone    not an older one than the last that was acknowledged as durable, nor one of before a
 *                 removal that the disk has seen (`undone`).
 * Whether what is kept is fresh, and whether a publication is followed up, may be true at any moment.
 * -DTIME          both go by a clock.  Each publisher has a follow-up, which puts the value on the
 *                 disk a second later.  When the power is cut, the disk has no older change than the
 *                 one that stood AGE seconds before (`aged`).  A second ends only when each publication
 *                 under way has begun in it or in the one before, and when each change of two seconds
 *                 ago is followed up: so processes run, and the disk answers.
 *
 * Each of these drops a rule, to show that the model notices:
 * -DDROP_WAIT             publishes without waiting for the content, whatever is kept
 * -DDROP_FALLBACK         a reader looks for nothing else where the content is missing
 * -DONLY_EARLIER          nor for what this start of the machine has kept
 * -DDROP_SECOND_LOOK      it does not read again when nothing stands in for what it has read
 * -DKEPT_AT_REMOVAL       a removal leaves what is kept
 * -DKEPT_AT_DURABLE       so does a durable publication
 * -DDURABLE_KEPT_LAST     a durable publication replaces what is kept, but after it is visible
 * -DUNWRITTEN_AT_REMOVAL  a removal drops what is kept before what is published is written
 * -DDROP_PUT_BACK         both drop what is kept although it stands in for what is published
 * -DREMOVE_ALL_KEPT       who removes what an earlier start has kept removes this one's, too
 * -DDROP_FOLLOW_UP        (TIME) nobody follows up
 * -DDROP_FRESHNESS        (TIME) leaves out the wait although what is kept is old
 *
 * Abstracted: a file's bytes (content of which a block is missing counts as missing), content that looks
 * lost and larger content (both are waited for), how a lease is taken away, the directory's own name, jumps of the clock, foreign changes.
 */

#ifndef CHANGES
#define CHANGES 5
#endif
#ifndef PUBLISHERS
#define PUBLISHERS 2
#endif
#ifndef CUTS
#define CUTS 2
#endif
#ifndef SECONDS
#define SECONDS 7
#endif
#ifndef AGE
#define AGE 5
#endif
#define NONE   7
#define BIT(n) (1 << (n))
#define has(set, n) ((set) & BIT(n))

byte boot;
byte ended;                     /* processes that have not noticed yet that the power was cut */
byte leaseBy = NONE;

/* Names, as processes see them: the number of the change whose content they name, 0 for none. */
byte current;                   /* value.plist; or the change that removed it */
byte kept;                      /* lease/kept-<this start of the machine> */
byte earlier;                   /* lease/kept-<an earlier one> */
/* As they were after the last change, and as the disk has them. */
byte lastKept, lastEarlier;
byte diskCurrent, diskKept, diskEarlier;
bool reached = true;            /* the last change is on the disk */

byte last;                      /* how many changes there were */
byte removals;                  /* those of them that are removals */
byte written = 1;               /* content that is on the disk */
byte cached = 1;                /* and what was written since the machine has started */
byte durable;                   /* the last that was acknowledged so */

#ifdef TIME
byte second;
byte before[AGE];               /* what was there when this second began, the one before it, … */
byte due[PUBLISHERS] = NONE;    /* for how many seconds something is to be followed up */
byte running[PUBLISHERS] = NONE;
byte busy[PUBLISHERS] = NONE;   /* for how many seconds a publication is under way */
#endif

hidden byte k;

#define fenced     (leaseBy != me)
#define isThere(n) ((n) != 0 && !has(removals, n))
#define isMissing(n) (isThere(n) && !has(cached, n))

inline write(n) { written = written | BIT(n); cached = cached | BIT(n) }

/* The exchange, or the rename that removes. */
inline exchange(content) {
  current = content;
  lastKept = kept;
  lastEarlier = earlier;
  reached = false
}

inline change() {
  last++;
  cached = cached | BIT(last);
  exchange(last)
}

/* fsync of the value's directory. */
inline commitDirectory() {
  if
  :: !reached -> diskCurrent = current; diskKept = lastKept; diskEarlier = lastEarlier; reached = true
  :: else
  fi
}

#ifdef TIME
inline beginsNow() { busy[me] = 0 }
inline endsNow() { busy[me] = NONE }
inline followUp() {
#ifndef DROP_FOLLOW_UP
  if
  :: due[me] == NONE -> due[me] = 0
  :: else
  fi
#else
  skip
#endif
}
#define isFollowed (due[me] != NONE)
#ifdef DROP_FRESHNESS
#define isFresh true
#else
#define isFresh (kept > before[1])
#endif
#else
inline beginsNow() { skip }
inline endsNow() { skip }
inline followUp() { skip }
#endif

/* Renames what is kept into the lease, after what is published is written, or, if its content is
   missing, is replaced by what is kept. */
inline dropKept() {
  if
  :: atomic { kept == 0 || fenced }
  :: atomic { kept != 0 && !fenced ->
#ifndef UNWRITTEN_AT_REMOVAL
       if
       :: isMissing(current) -> isLost = true
       :: else -> write(current)
       fi
#else
       skip
#endif
     };
#ifndef DROP_PUT_BACK
     atomic {
       if
       :: isLost && !fenced -> exchange(kept)
       :: else
       fi;
       isLost = false };
#endif
     atomic {
       if
       :: !fenced -> kept = 0
       :: else
       fi }
  fi
}

/* When all that a process was is gone another one begins. */
#define ENDED(n) unless { has(ended, n) }; atomic { ended = ended & ~BIT(n)

inline forgetChange() {
  mine = 0;
  isFollowedUp = false;
  isHasty = false;
  isDurable = false;
  isLost = false
}

inline forgetReading() {
  found = 0;
  got = 0;
  asked = 0;
  isOwn = false
}

proctype Publisher(byte me) {
  bool isFollowedUp, isHasty, isDurable, isLost;
  byte mine;

end_again:
  {
    do
    :: atomic { last < CHANGES -> leaseBy = me; beginsNow() };
#ifdef TIME
       atomic { isFollowedUp = isFollowed };
       atomic { isHasty = isFollowedUp && isThere(current) && kept != 0 && isFresh };
#else
       if
       :: atomic { true }
       :: atomic { isThere(current) && kept != 0 -> isHasty = true }
       :: atomic { true -> isDurable = true }
       :: atomic { isThere(current) -> goto removing }
       fi;
#ifdef DROP_WAIT
       isHasty = !isDurable;
#endif
#if !defined(KEPT_AT_DURABLE) && !defined(DURABLE_KEPT_LAST)
       if
       :: isDurable -> dropKept()
       :: else
       fi;
#endif
#endif
       atomic {                 /* content that is waited for is written before */
         if
         :: !fenced && last < CHANGES ->
            change();
            mine = last;
            if
            :: !isHasty -> write(last)
            :: else
            fi
         :: else -> goto done
         fi };
#ifndef TIME
       if
       :: isDurable ->
#ifdef DURABLE_KEPT_LAST
          atomic {
            if
            :: !fenced && kept != 0 -> kept = mine
            :: else
            fi };
#endif
          atomic { commitDirectory(); durable = (mine > durable -> mine : durable); goto done }
       :: else
       fi;
#endif
       if                       /* what was published becomes what is kept */
       :: isHasty
       :: else ->
          if
          :: atomic { kept != 0 }
          :: atomic { kept == 0 };
#ifdef REMOVE_ALL_KEPT
             atomic { kept = 0; earlier = 0 }
#else
             atomic { earlier = 0 }
#endif
          fi;
          atomic {
            if
            :: !fenced -> kept = mine
            :: else
            fi }
       fi;
       atomic { followUp(); goto done };

#ifndef TIME
removing:
#ifndef KEPT_AT_REMOVAL
       dropKept();
#endif
       atomic {
         if
         :: !fenced && last < CHANGES && isThere(current) ->
            change(); removals = removals | BIT(last)
         :: else
         fi };
#endif

done:
       atomic {
         endsNow();
         forgetChange() }
    od
  } ENDED(me); forgetChange(); goto end_again }
}

#ifdef TIME

proctype FollowUp(byte me) {
end:
  do
  :: atomic { due[me] != NONE -> running[me] = due[me]; due[me] = NONE };
     atomic { write(current) };
     atomic { commitDirectory(); running[me] = NONE }
  od
}

#define isLate(since) (since == 2)     /* 7 is never */
#define isInTime(n)   (!isLate(due[n]) && !isLate(running[n]) && busy[n] != 1)
#define older(since)  since = (since == NONE -> NONE : since + 1)

active proctype clock() {
end:
  do
  :: atomic { second < SECONDS && isInTime(0) && isInTime(PUBLISHERS - 1) ->
       second++;
       k = AGE - 1;
       do
       :: k > 0 -> before[k] = before[k - 1]; k--
       :: else -> break
       od;
       before[0] = current;
       do
       :: k < PUBLISHERS -> older(due[k]); older(running[k]); older(busy[k]); k++
       :: else -> break
       od }
  od
}

#else

proctype Reader() {
  byte found, got, asked;
  bool isOwn, damaged, undone;

end_again:
  {
    do
    :: atomic { boot > 0 -> asked = durable; found = current; got = current };
       if
       :: atomic { !isMissing(found) }
       :: atomic { isMissing(found) };
#ifdef DROP_FALLBACK
          got = 0;
#else
          atomic {              /* the names that are there */
            isOwn = kept != 0;
#ifdef ONLY_EARLIER
            got = (isOwn -> 0 : earlier)
#else
            got = (isOwn -> kept : earlier)
#endif
          };
          atomic { got = (isOwn && got != 0 -> kept : (got == earlier -> got : 0)) };
#endif
          if
          :: atomic { got == 0 &&
#ifdef DROP_SECOND_LOOK
               true
#else
               current == found
#endif
               -> damaged = true; assert(!damaged) }
          :: atomic { got == 0 && current != found -> forgetReading(); goto end_again }
          :: atomic { got != 0 ->
               damaged = isMissing(got);
               assert(!damaged);
               k = got + 1;
               do
               :: k <= found -> undone = has(removals, k) != 0; assert(!undone); k++
               :: else -> break
               od }
          fi
       fi;
       atomic { undone = got < asked; assert(!undone); forgetReading() }
    od
  } ENDED(PUBLISHERS); forgetReading(); goto end_again }
}

#endif

/* Names reach the disk by themselves, and the power is cut. */
active proctype world() {
  bool aged, damaged;

end:
  do
  :: atomic { !reached || diskKept != kept || diskEarlier != earlier ->
       diskCurrent = current; diskKept = kept; diskEarlier = earlier; reached = true }
  :: atomic { boot < CUTS ->
       boot++;
       leaseBy = NONE;
       if                       /* content that nobody has waited for may be there all the same */
       :: true -> write(diskCurrent)
       :: true
       fi;
       cached = written;
       assert(diskKept == 0 || diskEarlier == 0);
       current = diskCurrent;
       removals = removals & (BIT(current + 1) - 1);    /* the later ones have never been */
       if                       /* the machine has gone on, or not */
       :: true -> kept = diskKept; earlier = diskEarlier
       :: true -> kept = 0; earlier = (diskKept != 0 -> diskKept : diskEarlier)
       fi;
       diskKept = kept;
       diskEarlier = earlier;
       lastKept = kept;
       lastEarlier = earlier;
       reached = true;
#ifdef TIME
       k = (kept != 0 -> kept : earlier);
       damaged = isMissing(current) && k == 0;
       assert(!damaged);
       aged = (isMissing(current) -> k : current) < before[AGE - 1];
       assert(!aged);
       goto stopped;
#else
       ended = BIT(PUBLISHERS + 1) - 1
#endif
     }
  od;
#ifdef TIME
stopped:                        /* and nothing more is looked at */
  do
  :: boot > 0 -> boot = 1
  od
#endif
}

init {
  atomic {
    k = 0;
    do
    :: k < PUBLISHERS ->
       run Publisher(k);
#ifdef TIME
       run FollowUp(k);
#endif
       k++
    :: else -> break
    od;
#ifndef TIME
    run Reader()
#endif
  }
}
