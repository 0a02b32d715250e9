/*
 * The directory of a name: a sweep removes it when it is empty, while writers come.
 *
 * One statement marked `atomic` is one system call, as in lease.pml.  A writer opens the lease
 * through the path, creates missing parts, locks, stages through the lease's descriptor and
 * publishes, or removes the value.  A sweeper takes the lease in the same way, and then removes
 * `held`, `lease` and the directory, each only if it is empty.  Every process may stop for ever at
 * every step, and a lease may be taken over from its holder.
 *
 * Proved:
 *   not lost   a published value is in the directory that the path names, and the path shows the
 *              last publication or removal (`lost`).
 *
 * Each of these drops a rule, to show that the model notices:
 * -DMOVE_AWAY     the directory is moved aside, and removed with its content
 * -DREMOVE_ALL    the same by `rm -r`, after a look for the value without the lease
 *
 * The names of values and notifications, of users and of the package, differ in their path only.
 * Presences and queues, also those of peers, are removed in the same two steps.  An arrival creates
 * its entry there (a member's file, a batch, a part of a queue) through a descriptor of the
 * directory.  So the entry keeps the directory, as `lease` does here; or its creation fails because
 * the directory is removed, and the arrival begins again through the path.  The exclusive role is a
 * value in the presence's directory, written under the lease, as here.
 *
 * Abstracted: how a lease is taken over (lease.pml: it is gone in one step), the marker, the version
 * that is kept for the loss of power, the file `identifier`, and the gate.
 */

#ifndef WRITERS
#define WRITERS 2
#endif
#ifndef SWEEPERS
#define SWEEPERS 1
#endif
#define PROCESSES (WRITERS + SWEEPERS)
#define SITES 2
#define LEASES 3
#define NONE 9

byte path = NONE;               /* the directory that the path names */
byte sites = 0;                 /* the number of directories so far */
bool lease[SITES];              /* whether `lease` is in it */
byte held[SITES] = NONE;        /* the generation of `lease/held` */
byte value[SITES];              /* 0 is none */

byte leases = 0;                /* the number of generations so far */
bool exists[LEASES];
byte siteOf[LEASES];
byte lockedBy[LEASES] = NONE;
byte entries[LEASES];           /* the number of staged files in it */

byte last = 0;                  /* the last publication */
bool lost;

#define OR_STOPS :: true -> goto stopped

inline unlock() {
  if
  :: mine != NONE && lockedBy[mine] == me -> lockedBy[mine] = NONE
  :: else
  fi;
  mine = NONE
}

/* Opens `lease/held` through the path, and creates missing parts, one call at a time. */
inline acquire() {
  do
  :: atomic { path == NONE && sites < SITES -> path = sites; site = sites; sites++ }
  :: atomic { path == NONE && sites == SITES -> goto stopped }                   /* enough */
  :: atomic { path != NONE && held[path] != NONE && lease[path] ->
       site = path; mine = held[path]; break }
  :: atomic { path != NONE && (held[path] == NONE || !lease[path]) -> site = path };
     if
     :: atomic { path == site -> lease[site] = true }                            /* mkdir lease */
     :: atomic { path != site -> goto again }                                    /* ENOENT */
     OR_STOPS
     fi;
     if
     :: atomic { lease[site] && held[site] == NONE && leases < LEASES ->         /* mkdir held */
          held[site] = leases; exists[leases] = true; siteOf[leases] = site; leases++ }
     :: atomic { lease[site] && held[site] == NONE && leases == LEASES -> goto stopped }
     :: atomic { !lease[site] -> goto again }
     :: atomic { lease[site] && held[site] != NONE }
     OR_STOPS
     fi;
     if
     :: atomic { held[site] != NONE -> mine = held[site]; break }
     :: atomic { held[site] == NONE -> goto again }
     OR_STOPS
     fi
  OR_STOPS
  od;
  if
  :: atomic { lockedBy[mine] == NONE -> lockedBy[mine] = me }                    /* flock */
  :: atomic { lockedBy[mine] != NONE -> mine = NONE; goto again }
  OR_STOPS
  fi;
  if
  :: atomic { exists[mine] -> entries[mine]++ }                                  /* declare, stage */
  :: atomic { !exists[mine] -> unlock(); goto again }
  OR_STOPS
  fi
}

active [WRITERS] proctype writer() {
  byte me = _pid;
  byte mine = NONE;
  byte site = NONE;
  byte number = 0;
again:
  acquire();
  if
  :: atomic { exists[mine] ->                                                    /* the exchange */
       number = last + 1;
       value[siteOf[mine]] = number; last = number; entries[mine]--;
       lost = !(path != NONE && value[path] == last); assert(!lost) }
  :: atomic { exists[mine] -> value[siteOf[mine]] = 0; last = 0; entries[mine]--;
       lost = path != NONE && value[path] != 0; assert(!lost) }
  :: atomic { !exists[mine] -> unlock(); goto again }                            /* leaseLost */
  OR_STOPS
  fi;
  atomic { unlock() };
  if
  :: last < 2 -> goto again
  :: true
  fi;
stopped:
  skip
}

active [SWEEPERS] proctype sweeper() {
  byte me = _pid;
  byte mine = NONE;
  byte site = NONE;
again:
#ifdef REMOVE_ALL
  if
  :: atomic { path != NONE && value[path] == 0 -> site = path }
  OR_STOPS
  fi;
  if
  :: atomic { held[site] != NONE -> exists[held[site]] = false; held[site] = NONE }
  :: atomic { held[site] == NONE }
  OR_STOPS
  fi;
  if
  :: atomic { path == site -> value[site] = 0; path = NONE; lost = last != 0; assert(!lost) }
  :: atomic { path != site }
  OR_STOPS
  fi;
  goto stopped;
#else
  acquire();
  if
  :: atomic { value[siteOf[mine]] == 0 }                                         /* is it empty? */
  :: atomic { value[siteOf[mine]] != 0 -> entries[mine]--; unlock(); goto stopped }
  OR_STOPS
  fi;
  site = siteOf[mine];
#ifdef MOVE_AWAY
  if
  :: atomic { path == site -> path = NONE }
  :: atomic { path != site }
  OR_STOPS
  fi;
  goto stopped;
#endif
  if
  :: atomic { exists[mine] -> entries[mine]-- }                                  /* unlink */
  :: atomic { !exists[mine] }
  OR_STOPS
  fi;
  if                                                                             /* rmdir held */
  :: atomic { held[site] != NONE && entries[held[site]] == 0 ->
       exists[held[site]] = false; held[site] = NONE }
  :: atomic { held[site] == NONE || entries[held[site]] != 0 -> unlock(); goto stopped }
  OR_STOPS
  fi;
#endif
  if                                                                             /* rmdir lease */
  :: atomic { held[site] == NONE -> lease[site] = false }
  :: atomic { held[site] != NONE -> unlock(); goto stopped }
  OR_STOPS
  fi;
  atomic { unlock() };
  if                                                                             /* rmdir */
  :: atomic { path != NONE && !lease[path] && value[path] == 0 -> path = NONE }
  :: atomic { path == NONE || lease[path] || value[path] != 0 }
  OR_STOPS
  fi;
  goto again;
stopped:
  skip
}

/* The lease is taken over from its holder: its entries are unlinked, and it is removed. */
#define BREAK(n) \
  :: atomic { exists[n] && lockedBy[n] != NONE -> \
       exists[n] = false; entries[n] = 0; held[siteOf[n]] = NONE }

active proctype breaker() {
end:
  do
  BREAK(0)
  BREAK(1)
  BREAK(2)
  od
}
