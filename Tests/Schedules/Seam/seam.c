#define _GNU_SOURCE
#include "seam.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CALLS(X) \
  X(open) X(close) X(read) X(write) X(stat) X(list) X(mkdir) X(unlink) X(rename) X(link) X(lock) \
  X(unlock) X(sync) X(times) X(mode) X(truncate) X(symlink) X(watch) X(unwatch) X(attribute) \
  X(copy) X(seek) X(poll) X(sleep) X(mutex) X(condition) X(semaphore) X(futex) X(end)
#define ENUMERATOR(name) c_##name,
enum call { CALLS(ENUMERATOR) };
#define NAME(name) #name,
static const char *const call_names[] = {CALLS(NAME)};

enum { threads = 64, nobody = -1, path_bytes = 320 };
enum state { unused, ready, waiting, polling, atLine, gone };

struct thread {
  uint32_t word;
  int8_t process;
  uint8_t state, kind;
  uint8_t is_woken;
  uint64_t key;
  int64_t deadline;  // 0: none
  uint64_t seen;
};

struct process {
  pid_t id;
  uint8_t state;  // unused, ready, waiting (stopped), gone
  uint8_t was_stopped;
  int8_t last;
  int status;
};

static struct shared {
  uint32_t parent;
  struct thread thread[threads];
  struct process process[seam_processes];
  int thread_count, step, made_count, choice_count, next_choice;
  int counts;  // whether the line was passed
  int expected;
  int verbose, end, is_prioritized, is_eager, change_count;
  int priority[seam_processes], changes[16];
  // The request to the parent.
  int asker, asker_stays, wanted, wants_time;
  struct seam_choice asked[8];
  int asked_count, ended;
  int64_t now, base[3], silence, line;
  uint64_t mutations, stamp;
  char root[256];
  size_t root_length;
  struct seam_choice choices[seam_choices], made[4096];
  struct seam_step steps[seam_steps];
  char notes[seam_processes][seam_note_bytes];
  char text[seam_steps][96];
} *S;

static __thread int me = nobody;
static int my_process = nobody;

// MARK: The functions behind those that this file replaces

#define FUNCTIONS(X) \
  X(long, syscall, long, ...) X(int, open, const char *, int, ...) \
  X(int, openat, int, const char *, int, ...) X(int, close, int) \
  X(ssize_t, read, int, void *, size_t) X(ssize_t, pread, int, void *, size_t, off_t) \
  X(ssize_t, write, int, const void *, size_t) \
  X(ssize_t, pwrite, int, const void *, size_t, off_t) \
  X(int, fstat, int, struct stat *) X(int, fstatat, int, const char *, struct stat *, int) \
  X(int, mkdirat, int, const char *, mode_t) X(int, unlinkat, int, const char *, int) \
  X(int, renameat, int, const char *, int, const char *) \
  X(int, linkat, int, const char *, int, const char *, int) \
  X(int, symlinkat, const char *, int, const char *) \
  X(ssize_t, readlinkat, int, const char *, char *, size_t) X(int, flock, int, int) \
  X(int, fsync, int) X(int, futimens, int, const struct timespec *) \
  X(int, utimensat, int, const char *, const struct timespec *, int) X(int, fchmod, int, mode_t) \
  X(int, ftruncate, int, off_t) X(int, inotify_add_watch, int, const char *, uint32_t) \
  X(int, inotify_rm_watch, int, int) X(int, poll, struct pollfd *, nfds_t, int) \
  X(int, epoll_wait, int, struct epoll_event *, int, int) \
  X(int, clock_gettime, clockid_t, struct timespec *) \
  X(int, nanosleep, const struct timespec *, struct timespec *) X(int, usleep, useconds_t) \
  X(unsigned, sleep, unsigned) \
  X(int, pthread_create, pthread_t *, const pthread_attr_t *, void *(*)(void *), void *) \
  X(int, pthread_mutex_lock, pthread_mutex_t *) X(int, pthread_mutex_unlock, pthread_mutex_t *) \
  X(int, pthread_cond_wait, pthread_cond_t *, pthread_mutex_t *) \
  X(int, pthread_cond_timedwait, pthread_cond_t *, pthread_mutex_t *, const struct timespec *) \
  X(int, pthread_cond_signal, pthread_cond_t *) X(int, pthread_cond_broadcast, pthread_cond_t *) \
  X(int, sem_wait, sem_t *) X(int, sem_timedwait, sem_t *, const struct timespec *) \
  X(int, sem_post, sem_t *)
#define POINTER(result, name, ...) static result (*real_##name)(__VA_ARGS__);
FUNCTIONS(POINTER)
#define RESOLVE(result, name, ...) real_##name = dlsym(RTLD_NEXT, #name);
__attribute__((constructor)) static void resolve(void) { FUNCTIONS(RESOLVE) }
#define REAL(name) (real_##name ? real_##name : (resolve(), real_##name))

// Returns whether the word was raised, and not only the time over.
static int word_wait(uint32_t *word, long milliseconds) {
  struct timespec limit = {milliseconds / 1000, milliseconds % 1000 * 1000000};
  int failure = errno, is_raised;
  while (!(is_raised = __atomic_exchange_n(word, 0, __ATOMIC_ACQUIRE))) {
    long result = REAL(syscall)(SYS_futex, word, FUTEX_WAIT, 0, milliseconds ? &limit : NULL, NULL, 0);
    if (result == -1 && errno == ETIMEDOUT) break;
  }
  errno = failure;
  return is_raised;
}

static void word_raise(uint32_t *word) {
  int failure = errno;
  __atomic_store_n(word, 1, __ATOMIC_RELEASE);
  REAL(syscall)(SYS_futex, word, FUTEX_WAKE, 1, NULL, NULL, 0);
  errno = failure;
}

// MARK: Decisions

static int can_run(int t) {
  struct thread *thread = &S->thread[t];
  return thread->state == ready || (thread->state == polling && thread->seen != S->mutations);
}

static int goes(int p) { return S->process[p].state == ready; }

static int thread_of(int p) {
  if (!goes(p)) return nobody;
  int last = S->process[p].last;
  if (last != nobody && can_run(last)) return last;
  for (int t = 0; t < S->thread_count; t++)
    if (S->thread[t].process == p && can_run(t)) return t;
  return nobody;
}

static int timed_of(int p) {
  int found = nobody;
  if (!goes(p)) return nobody;
  for (int t = 0; t < S->thread_count; t++) {
    struct thread *thread = &S->thread[t];
    if (thread->process != p || thread->deadline == 0) continue;
    if (thread->state != waiting && thread->state != polling) continue;
    if (found == nobody || thread->deadline < S->thread[found].deadline) found = t;
  }
  return found;
}

static int pass_time(int t) {
  if (t == nobody) return nobody;
  if (S->thread[t].deadline > S->now) S->now = S->thread[t].deadline;
  return t;
}

// The thread that goes on where no choice says otherwise: the running one; then its process; then the
// next ones; then time passes; then a stopped process is continued.
//
// A process that never waits gives way now and then: no machine runs only one of them.
static int standard(int running, int process) {
  int is_fair = S->counts && S->step % 1000 == 999;
  if (running != nobody && goes(process) && can_run(running) && !is_fair) return running;
  for (int k = is_fair; k < seam_processes + is_fair; k++) {
    int t = thread_of((process + k) % seam_processes);
    if (t != nobody) return t;
  }
  int found = nobody;
  for (int p = 0; p < seam_processes; p++) {
    int t = timed_of(p);
    if (t != nobody && (found == nobody || S->thread[t].deadline < S->thread[found].deadline)) found = t;
  }
  return found;
}

static void made(int action, int process) {
  if (S->made_count < 4096)
    S->made[S->made_count++] = (struct seam_choice){S->step - 1, action, process};
}

static int pick(int running, int process) {
  int usual = standard(running, process), t = nobody;
  if (S->wanted != nobody) {
    t = thread_of(S->wanted);
    // Time passes only for one that would otherwise wait.
    if (S->wants_time && (t == nobody || S->thread[t].state == polling)) t = timed_of(S->wanted);
  } else if (S->is_prioritized && S->counts) {
    // Not for long: a process that runs is not slower than every deadline.
    int is_eager = S->is_eager && S->now < S->line + 4000000000ll;
    for (int p = 0; p < seam_processes; p++) {
      int candidate = thread_of(p);
      if (candidate == nobody && is_eager) candidate = timed_of(p);
      if (candidate != nobody && (t == nobody || S->priority[p] > S->priority[S->thread[t].process]))
        t = candidate;
    }
    if (t != nobody && usual != nobody && S->thread[t].process == S->thread[usual].process) t = usual;
  }
  if (t != nobody && t != usual)
    made(can_run(t) ? seam_go : seam_time, S->thread[t].process);
  else
    t = usual;
  S->wanted = nobody;
  return t != nobody && !can_run(t) ? pass_time(t) : t;
}

// Gives the turn to a thread; the parent gets it if there is none.
static void hand(int t) {
  if (t == nobody) {
    word_raise(&S->parent);
    return;
  }
  S->process[S->thread[t].process].last = t;
  if (t != me || me == nobody) word_raise(&S->thread[t].word);
}

static void record(int call, int waits, const uint32_t *touched, const char *text) {
  int index = S->step++;
  if (index >= seam_steps) return;
  struct seam_step *step = &S->steps[index];
  *step = (struct seam_step){.process = my_process, .thread = me, .call = call, .waits = waits, .time = S->now};
  for (int k = 0; touched && k < 4; k++) step->touched[k] = touched[k];
  for (int p = 0; p < seam_processes; p++) {
    int t = thread_of(p);
    if (t != nobody && S->thread[t].state == ready) step->ready |= 1 << p;
    if (t != nobody && S->thread[t].state == polling) step->polling |= 1 << p;
    if (timed_of(p) != nobody) step->timed |= 1 << p;
    if (S->process[p].state == waiting) step->stopped |= 1 << p;
  }
  if (S->verbose) snprintf(S->text[index], sizeof S->text[0], "%s", text ? text : "");
}

// The running thread stands before a call, or waits: decides who goes on, and returns when it does.
static void decide(int waits) {
  S->now += 20000;
  int stays = !waits;
  S->asked_count = 0;
  S->wanted = nobody;
  if (S->counts) {
    int step = S->step - 1;
    while (S->next_choice < S->choice_count && (int)S->choices[S->next_choice].step <= step) {
      struct seam_choice choice = S->choices[S->next_choice++];
      if ((int)choice.step < step) continue;
      if (choice.action == seam_go || choice.action == seam_time) {
        S->wanted = choice.process;
        S->wants_time = choice.action == seam_time;
      } else if (S->asked_count < 8) {
        S->asked[S->asked_count++] = choice;
      }
    }
    if (S->next_choice == S->choice_count && S->silence == 0) S->silence = S->now;
    for (int k = 0; k < S->change_count; k++)
      if (S->changes[k] == step) S->priority[my_process] = -k - 1;
  }
  if (S->step >= seam_steps) {
    S->end = seam_endless;
    hand(nobody);
    word_wait(&S->thread[me].word, 0);
  }
  int next = nobody;
  if (S->asked_count == 0) next = pick(stays ? me : nobody, my_process);
  if (next == me) {
    hand(me);
    return;
  }
  S->asker = me;
  S->asker_stays = stays;
  hand(next);
  word_wait(&S->thread[me].word, 0);
}

// Waits as long as no other thread wakes this one; false if the deadline passed first.
static int wait_for(int kind, uint64_t key, int64_t deadline, int is_poll) {
  struct thread *thread = &S->thread[me];
  thread->kind = kind;
  thread->key = key;
  thread->deadline = deadline;
  thread->is_woken = 0;
  thread->seen = S->mutations;
  thread->state = is_poll ? polling : waiting;
  record(kind, 1, NULL, NULL);
  decide(1);
  int woken = thread->is_woken;
  thread->state = ready;
  thread->deadline = 0;
  return woken;
}

static int wake(int kind, uint64_t key, int most, int everywhere) {
  int count = 0;
  for (int t = 0; t < S->thread_count && count < most; t++) {
    struct thread *thread = &S->thread[t];
    if (thread->state != waiting || thread->kind != kind || thread->key != key) continue;
    if (!everywhere && thread->process != my_process) continue;
    thread->state = ready;
    thread->is_woken = 1;
    count++;
  }
  return count;
}

// MARK: Places

struct name {
  char path[path_bytes];
};
static struct name named[512];
static uint8_t locked[512];

static uint32_t hash_component(const char *start, size_t length) {
  size_t digits = strspn(start, "0123456789abcdef");
  if (digits >= 10 && digits >= length) start = "#", length = 1;
  uint32_t hash = 2166136261u;
  for (size_t k = 0; k < length; k++) {
    if (k > 0 && start[k] == '-') break;
    hash = (hash ^ (uint8_t)start[k]) * 16777619u;
  }
  return hash & ~1u;
}

// The hash of the last name of a path, or of the one before it.
static uint32_t hash_name(const char *path, int is_parent) {
  const char *end = path + strlen(path), *start;
  while (1) {
    start = end;
    while (start > path && start[-1] != '/') start--;
    if (!is_parent || start == path) break;
    is_parent = 0;
    end = start - 1;
  }
  return hash_component(start, end - start);
}

// Composes the path of a name in a directory; false if it is no place below the root.
static int place(struct name *result, int directory, const char *path) {
  if (me == nobody) return 0;
  int own = 0;
  size_t length = 0;
  if (sscanf(path, "/proc/self/fd/%d", &own) == 1) {
    if (own < 0 || own >= 512 || !named[own].path[0]) return 0;
    *result = named[own];
    return 1;
  }
  if (path[0] != '/') {
    if (directory < 0 || directory >= 512 || !named[directory].path[0]) return 0;
    strcpy(result->path, named[directory].path);
    length = strlen(result->path);
  } else {
    if (strncmp(path, S->root, S->root_length) != 0) return 0;
    path += S->root_length;
    strcpy(result->path, ".");
    length = 1;
  }
  while (*path) {
    size_t part = strcspn(path, "/");
    if (part == 2 && path[0] == '.' && path[1] == '.') {
      while (length > 0 && result->path[length - 1] != '/') length--;
      if (length > 0) length--;
    } else if (part > 0 && !(part == 1 && path[0] == '.')) {
      if (length + part + 2 > path_bytes) return 0;
      result->path[length++] = '/';
      memcpy(result->path + length, path, part);
      length += part;
    }
    result->path[length] = 0;
    path += part;
    while (*path == '/') path++;
  }
  result->path[length] = 0;
  return 1;
}

static int has_name(int file) { return me != nobody && file >= 0 && file < 512 && named[file].path[0]; }

enum { reads = 0, writes = 1, enters = 3 };

static int visit(int call, int effect, const char *a, const char *b) {
  uint32_t touched[4] = {hash_name(a, 0) | (effect & 1), 0, 0, 0};
  if (effect == enters) touched[1] = hash_name(a, 1) | 1;
  if (b) touched[2] = hash_name(b, 0) | 1, touched[3] = hash_name(b, 1) | 1;
  char text[96];
  if (S->verbose) snprintf(text, sizeof text, b ? "%s > %s" : "%s", a + (a[0] == '.' && a[1] == '/') * 2, b ? b + 2 : "");
  record(call, 0, touched, S->verbose ? text : NULL);
  int index = S->step - 1;
  decide(0);
  if (effect != reads) S->mutations++;
  return index;
}

static long done(int index, long result) {
  if (index >= 0 && index < seam_steps) S->steps[index].result = result == -1 ? -errno : 0;
  return result;
}

static int keep(int file, const struct name *name) {
  if (file >= 0 && file < 512) {
    named[file] = *name;
    locked[file] = 0;
  }
  return file;
}

#define AT(directory, path) \
  struct name at; \
  int is_seen = place(&at, directory, path)

int openat(int directory, const char *path, int flags, ...) {
  va_list list;
  va_start(list, flags);
  mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(list, mode_t) : 0;
  va_end(list);
  AT(directory, path);
  if (!is_seen) return REAL(openat)(directory, path, flags, mode);
  int index = visit(c_open, flags & O_CREAT ? enters : reads, at.path, NULL);
  return keep(done(index, REAL(openat)(directory, path, flags, mode)), &at);
}

int open(const char *path, int flags, ...) {
  va_list list;
  va_start(list, flags);
  mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(list, mode_t) : 0;
  va_end(list);
  return openat(AT_FDCWD, path, flags, mode);
}

int close(int file) {
  if (!has_name(file)) return REAL(close)(file);
  int index = visit(c_close, locked[file] ? writes : reads, named[file].path, NULL);
  // Observers may be told of it.
  S->mutations++;
  named[file].path[0] = 0;
  return done(index, REAL(close)(file));
}

#define ON_FILE(result, name, call, effect, file, parameters, arguments) \
  result name parameters { \
    if (!has_name(file)) return REAL(name) arguments; \
    int index = visit(call, effect, named[file].path, NULL); \
    return done(index, REAL(name) arguments); \
  }
#define ON_NAME(result, name, call, effect, parameters, arguments) \
  result name parameters { \
    AT(directory, path); \
    if (!is_seen) return REAL(name) arguments; \
    int index = visit(call, effect, at.path, NULL); \
    return done(index, REAL(name) arguments); \
  }
ON_FILE(ssize_t, read, c_read, reads, file, (int file, void *to, size_t size), (file, to, size))
ON_FILE(ssize_t, pread, c_read, reads, file, (int file, void *to, size_t size, off_t place), (file, to, size, place))
ON_FILE(ssize_t, pwrite, c_write, writes, file, (int file, const void *from, size_t size, off_t place), (file, from, size, place))
ON_FILE(int, fstat, c_stat, reads, file, (int file, struct stat *status), (file, status))
ON_FILE(int, fsync, c_sync, reads, file, (int file), (file))
ON_FILE(int, futimens, c_times, writes, file, (int file, const struct timespec times[2]), (file, times))
ON_FILE(int, fchmod, c_mode, writes, file, (int file, mode_t mode), (file, mode))
ON_FILE(int, ftruncate, c_truncate, writes, file, (int file, off_t size), (file, size))
ON_NAME(int, fstatat, c_stat, reads, (int directory, const char *path, struct stat *status, int flags), (directory, path, status, flags))
ON_NAME(int, mkdirat, c_mkdir, enters, (int directory, const char *path, mode_t mode), (directory, path, mode))
ON_NAME(int, unlinkat, c_unlink, enters, (int directory, const char *path, int flags), (directory, path, flags))
ON_NAME(int, symlinkat, c_symlink, enters, (const char *target, int directory, const char *path), (target, directory, path))
ON_NAME(ssize_t, readlinkat, c_stat, reads, (int directory, const char *path, char *to, size_t size), (directory, path, to, size))
ON_NAME(int, utimensat, c_times, writes, (int directory, const char *path, const struct timespec times[2], int flags), (directory, path, times, flags))

ssize_t write(int file, const void *from, size_t size) {
  if (!has_name(file)) {
    // Perhaps a pipe or a counter that another thread waits for.
    if (me != nobody) S->mutations++;
    return REAL(write)(file, from, size);
  }
  int index = visit(c_write, writes, named[file].path, NULL);
  return done(index, REAL(write)(file, from, size));
}

static int two(int call, int from, const char *old, int to, const char *new, int *index) {
  struct name a, b;
  if (!place(&a, from, old) || !place(&b, to, new)) return 0;
  *index = visit(call, enters, a.path, b.path);
  return 1;
}

int renameat(int from, const char *old, int to, const char *new) {
  int index = nobody;
  two(c_rename, from, old, to, new, &index);
  return done(index, REAL(renameat)(from, old, to, new));
}

int linkat(int from, const char *old, int to, const char *new, int flags) {
  int index = nobody;
  two(c_link, from, old, to, new, &index);
  return done(index, REAL(linkat)(from, old, to, new, flags));
}

int flock(int file, int operation) {
  if (!has_name(file)) return REAL(flock)(file, operation);
  int index = visit(operation & LOCK_UN ? c_unlock : c_lock, writes, named[file].path, NULL);
  int result = done(index, REAL(flock)(file, operation));
  if (result == 0) locked[file] = !(operation & LOCK_UN);
  return result;
}

int inotify_add_watch(int file, const char *path, uint32_t mask) {
  AT(AT_FDCWD, path);
  if (!is_seen) return REAL(inotify_add_watch)(file, path, mask);
  int index = visit(c_watch, reads, at.path, NULL);
  return done(index, REAL(inotify_add_watch)(file, path, mask));
}

// MARK: Time

static const clockid_t clocks[] = {CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_BOOTTIME};

static int64_t nanoseconds(const struct timespec *time) { return time->tv_sec * 1000000000ll + time->tv_nsec; }

int clock_gettime(clockid_t clock, struct timespec *time) {
  for (int k = 0; me != nobody && k < 3; k++) {
    if (clocks[k] != clock) continue;
    // Otherwise a loop that only looks at the clock would not end.
    S->now += 1000;
    int64_t now = S->base[k] + S->now;
    time->tv_sec = now / 1000000000;
    time->tv_nsec = now % 1000000000;
    return 0;
  }
  return REAL(clock_gettime)(clock, time);
}

static void pause_for(int64_t pause) {
  // At least one, because 0 is no deadline.
  wait_for(c_sleep, 0, S->now + (pause > 0 ? pause : 1), 0);
}

int nanosleep(const struct timespec *pause, struct timespec *rest) {
  if (me == nobody) return REAL(nanosleep)(pause, rest);
  pause_for(nanoseconds(pause));
  return 0;
}

int usleep(useconds_t pause) {
  if (me == nobody) return REAL(usleep)(pause);
  pause_for(pause * 1000ll);
  return 0;
}

unsigned sleep(unsigned pause) {
  if (me == nobody) return REAL(sleep)(pause);
  pause_for(pause * 1000000000ll);
  return 0;
}

// The moment of an absolute time, which is of the clock that it can be of.
static int64_t moment(const struct timespec *time) {
  int64_t absolute = nanoseconds(time);
  int64_t result = absolute - S->base[absolute >= S->base[0] - 1000000000ll * 86400 ? 0 : 1];
  return result > 0 ? result : 1;
}

// MARK: Waits

int poll(struct pollfd *files, nfds_t count, int timeout) {
  if (me == nobody) return REAL(poll)(files, count, timeout);
  int64_t deadline = timeout < 0 ? 0 : S->now + timeout * 1000000ll + 1;
  while (1) {
    int result = REAL(poll)(files, count, 0);
    if (result != 0 || (deadline && S->now >= deadline)) return result;
    wait_for(c_poll, 0, deadline, 1);
  }
}

int epoll_wait(int file, struct epoll_event *events, int most, int timeout) {
  if (me == nobody) return REAL(epoll_wait)(file, events, most, timeout);
  int64_t deadline = timeout < 0 ? 0 : S->now + timeout * 1000000ll + 1;
  while (1) {
    int result = REAL(epoll_wait)(file, events, most, 0);
    if (result != 0 || (deadline && S->now >= deadline)) return result;
    wait_for(c_poll, 0, deadline, 1);
  }
}

int pthread_mutex_lock(pthread_mutex_t *mutex) {
  if (me == nobody) return REAL(pthread_mutex_lock)(mutex);
  while (1) {
    int result = pthread_mutex_trylock(mutex);
    if (result != EBUSY) return result;
    wait_for(c_mutex, (uintptr_t)mutex, 0, 0);
  }
}

int pthread_mutex_unlock(pthread_mutex_t *mutex) {
  int result = REAL(pthread_mutex_unlock)(mutex);
  if (me != nobody) wake(c_mutex, (uintptr_t)mutex, threads, 0);
  return result;
}

static int wait_condition(pthread_cond_t *condition, pthread_mutex_t *mutex, int64_t deadline) {
  pthread_mutex_unlock(mutex);
  int woken = wait_for(c_condition, (uintptr_t)condition, deadline, 0);
  pthread_mutex_lock(mutex);
  return woken ? 0 : ETIMEDOUT;
}

int pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex) {
  if (me == nobody) return REAL(pthread_cond_wait)(condition, mutex);
  return wait_condition(condition, mutex, 0);
}

int pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex, const struct timespec *until) {
  if (me == nobody) return REAL(pthread_cond_timedwait)(condition, mutex, until);
  return wait_condition(condition, mutex, moment(until));
}

int pthread_cond_signal(pthread_cond_t *condition) {
  if (me == nobody) return REAL(pthread_cond_signal)(condition);
  wake(c_condition, (uintptr_t)condition, 1, 0);
  return 0;
}

int pthread_cond_broadcast(pthread_cond_t *condition) {
  if (me == nobody) return REAL(pthread_cond_broadcast)(condition);
  wake(c_condition, (uintptr_t)condition, threads, 0);
  return 0;
}

static int wait_semaphore(sem_t *semaphore, int64_t deadline) {
  while (sem_trywait(semaphore) == -1) {
    if (errno == EINTR) continue;
    if (!wait_for(c_semaphore, (uintptr_t)semaphore, deadline, 0) && deadline) {
      errno = ETIMEDOUT;
      return -1;
    }
  }
  return 0;
}

int sem_wait(sem_t *semaphore) {
  return me == nobody ? REAL(sem_wait)(semaphore) : wait_semaphore(semaphore, 0);
}

int sem_timedwait(sem_t *semaphore, const struct timespec *until) {
  return me == nobody ? REAL(sem_timedwait)(semaphore, until) : wait_semaphore(semaphore, moment(until));
}

int sem_post(sem_t *semaphore) {
  int result = REAL(sem_post)(semaphore);
  if (me != nobody) wake(c_semaphore, (uintptr_t)semaphore, 1, 0);
  return result;
}

// A word in a file is the same for all processes; its address is not.
static uint64_t futex_key(uint32_t *word, int is_private, int *everywhere) {
  static struct {
    uintptr_t address;
    uint64_t key;
  } known[8];
  *everywhere = 0;
  if (is_private) return (uintptr_t)word;
  *everywhere = 1;
  static int count;
  for (int k = 0; k < count; k++)
    if (known[k].address == (uintptr_t)word) return known[k].key;
  // The file's number stands in the list of this process's memory.
  uint64_t key = (uintptr_t)word;
  FILE *maps = fopen("/proc/self/maps", "r");
  char line[512];
  while (maps && fgets(line, sizeof line, maps)) {
    unsigned long from, to, inode = 0;
    if (sscanf(line, "%lx-%lx %*s %*s %*s %lu", &from, &to, &inode) < 2) continue;
    if ((uintptr_t)word >= from && (uintptr_t)word < to && inode) key = inode;
  }
  if (maps) fclose(maps);
  if (count < 8) known[count].address = (uintptr_t)word, known[count++].key = key;
  return key;
}

static long futex(uint32_t *word, int operation, uint32_t value, const struct timespec *time, uint32_t *second, uint32_t third) {
  int everywhere, command = operation & FUTEX_CMD_MASK;
  uint64_t key = futex_key(word, operation & FUTEX_PRIVATE_FLAG, &everywhere);
  switch (command) {
    case FUTEX_WAIT:
    case FUTEX_WAIT_BITSET:
      if (__atomic_load_n(word, __ATOMIC_SEQ_CST) != value) return errno = EAGAIN, -1;
      int64_t deadline = time == NULL ? 0 : command == FUTEX_WAIT ? S->now + nanoseconds(time) + 1 : moment(time);
      return wait_for(c_futex, key, deadline, 0) ? 0 : (errno = ETIMEDOUT, -1);
    case FUTEX_WAKE:
    case FUTEX_WAKE_BITSET: return wake(c_futex, key, (int)value, everywhere);
    case FUTEX_WAKE_OP:
      REAL(syscall)(SYS_futex, word, operation, value, time, second, third);
      return wake(c_futex, key, (int)value, everywhere);
    case FUTEX_LOCK_PI:
    case FUTEX_LOCK_PI2: {
      uint32_t own = (uint32_t)REAL(syscall)(SYS_gettid);
      while (1) {
        uint32_t free = 0;
        if (__atomic_compare_exchange_n(word, &free, own, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) return 0;
        __atomic_fetch_or(word, FUTEX_WAITERS, __ATOMIC_SEQ_CST);
        wait_for(c_futex, key, 0, 0);
      }
    }
    case FUTEX_UNLOCK_PI:
      __atomic_store_n(word, 0, __ATOMIC_SEQ_CST);
      wake(c_futex, key, threads, everywhere);
      return 0;
    default: return REAL(syscall)(SYS_futex, word, operation, value, time, second, third);
  }
}

long syscall(long number, ...) {
  va_list list;
  va_start(list, number);
  long a[6];
  for (int k = 0; k < 6; k++) a[k] = va_arg(list, long);
  va_end(list);
  int index = nobody;
  if (me == nobody) return REAL(syscall)(number, a[0], a[1], a[2], a[3], a[4], a[5]);
  switch (number) {
    case SYS_futex:
      return futex((uint32_t *)a[0], (int)a[1], (uint32_t)a[2], (const struct timespec *)a[3], (uint32_t *)a[4], (uint32_t)a[5]);
    case SYS_renameat2: two(c_rename, (int)a[0], (char *)a[1], (int)a[2], (char *)a[3], &index); break;
    case 437 /* openat2 */: {
      AT((int)a[0], (char *)a[1]);
      if (!is_seen) break;
      index = visit(c_open, *(uint64_t *)a[2] & O_CREAT ? enters : reads, at.path, NULL);
      return keep((int)done(index, REAL(syscall)(number, a[0], a[1], a[2], a[3])), &at);
    }
    case SYS_getdents64:
      if (has_name((int)a[0])) index = visit(c_list, reads, named[a[0]].path, NULL);
      break;
    case SYS_sync_file_range:
      if (has_name((int)a[0])) index = visit(c_sync, reads, named[a[0]].path, NULL);
      break;
    case SYS_copy_file_range:
      if (has_name((int)a[2])) index = visit(c_copy, writes, named[a[2]].path, NULL);
      break;
    case SYS_fsetxattr:
    case SYS_fremovexattr:
      if (has_name((int)a[0])) index = visit(c_attribute, writes, named[a[0]].path, NULL);
      break;
  }
  return done(index, REAL(syscall)(number, a[0], a[1], a[2], a[3], a[4], a[5]));
}

// MARK: Threads and processes

struct beginning {
  void *(*body)(void *);
  void *argument;
  int thread;
};

static int new_thread(int process) {
  int t = S->thread_count++;
  if (t >= threads) abort();
  S->thread[t] = (struct thread){.process = process, .state = ready};
  return t;
}

static void leave(void) {
  S->thread[me].state = gone;
  record(c_end, 1, NULL, NULL);
  S->now += 20000;
  S->asked_count = 0;
  S->asker = nobody;
  S->wanted = nobody;
  int next = pick(nobody, my_process);
  me = nobody;
  hand(next);
}

static void *begin_thread(void *raw) {
  struct beginning beginning = *(struct beginning *)raw;
  free(raw);
  word_wait(&S->thread[beginning.thread].word, 0);
  me = beginning.thread;
  void *result = beginning.body(beginning.argument);
  leave();
  return result;
}

static int refuses_threads;
void seam_refuse_threads(int refuses) { refuses_threads = refuses; }

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*body)(void *), void *argument) {
  if (refuses_threads) return EAGAIN;
  if (me == nobody) return REAL(pthread_create)(thread, attributes, body, argument);
  struct beginning *beginning = malloc(sizeof *beginning);
  *beginning = (struct beginning){body, argument, new_thread(my_process)};
  return REAL(pthread_create)(thread, attributes, begin_thread, beginning);
}

// The last that a process does: the parent waits for its end, and gives the turn to the next one.
static void end_process(void) {
  if (my_process == nobody || me == nobody) return;
  S->ended = my_process;
  record(c_end, 1, NULL, NULL);
  S->asked_count = 0;
  word_raise(&S->parent);
}

// Moves code and constants to large pages: a forked process finds them mapped, and takes no fault for each.
static void use_large_pages(void) {
  const uintptr_t large = 2 << 20;
  struct part { uintptr_t start, end; int protection; } parts[64];
  int count = 0;
  char line[512], access[8], file[256];
  FILE *maps = fopen("/proc/self/maps", "r");
  while (maps && count < 64 && fgets(line, sizeof line, maps)) {
    struct part *part = &parts[count];
    if (sscanf(line, "%lx-%lx %7s %*s %*s %*s %255s", &part->start, &part->end, access, file) != 4) continue;
    if (access[0] != 'r' || access[1] != '-' || file[0] != '/') continue;
    part->protection = PROT_READ | (access[2] == 'x' ? PROT_EXEC : 0);
    part->start = (part->start + large - 1) & -large;
    part->end &= -large;
    if (part->start < part->end) count++;
  }
  if (maps) fclose(maps);
  for (int k = 0; k < count; k++) {
    size_t length = parts[k].end - parts[k].start;
    char *area = mmap(NULL, length + large, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (area == MAP_FAILED) continue;
    char *copy = (char *)(((uintptr_t)area + large - 1) & -large);
    madvise(copy, length, MADV_HUGEPAGE);
    memcpy(copy, (char *)parts[k].start, length);
    mprotect(copy, length, parts[k].protection);
    mremap(copy, length, length, MREMAP_MAYMOVE | MREMAP_FIXED, (void *)parts[k].start);
  }
}

// Where the number of the next process can be set, or -1.
static int numbers = -1;

void seam_open(char *const *arguments, int core) {
  if (!getenv("SEAM")) {
    setenv("SEAM", "1", 1);
    setenv("SWIFT_DETERMINISTIC_HASHING", "1", 1);
    setenv("LD_BIND_NOW", "1", 1);
    personality(ADDR_NO_RANDOMIZE);
    execv("/proc/self/exe", arguments);
  }
  // Processes of its own: their numbers repeat, and a look at all of them is short.
  if ((unshare(CLONE_NEWPID | CLONE_NEWNS) == 0) || unshare(CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS) == 0) {
    pid_t inner = fork();
    if (inner > 0) {
      int status;
      signal(SIGINT, SIG_IGN);
      while (waitpid(inner, &status, 0) == -1) continue;
      _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL);
    mount("proc", "/proc", "proc", 0, NULL);
    mount("tmpfs", "/dev/shm", "tmpfs", 0, "mode=700");
    numbers = open("/proc/sys/kernel/ns_last_pid", O_WRONLY | O_CLOEXEC);
  }
  // One thread runs at a time, so the hand-over is cheapest where it is.
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core < 0 ? sched_getcpu() : core % (int)sysconf(_SC_NPROCESSORS_ONLN), &set);
  sched_setaffinity(0, sizeof set, &set);
  use_large_pages();
  S = mmap(NULL, sizeof *S, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (S == MAP_FAILED) abort();
  atexit(end_process);
  // A line is read when it is printed, also from a file.
  setvbuf(stdout, NULL, _IOLBF, 0);
}

void seam_begin(const char *root, int verbose) {
  memset(S, 0, offsetof(struct shared, choices));
  for (int p = 0; p < seam_processes; p++) S->notes[p][0] = 0;
  S->verbose = verbose;
  S->wanted = S->asker = S->ended = nobody;
  S->root_length = strlen(root);
  strcpy(S->root, root);
  for (int k = 0; k < 3; k++) {
    struct timespec time;
    REAL(clock_gettime)(clocks[k], &time);
    S->base[k] = nanoseconds(&time);
  }
  // As long after the opening of what the participants inherit each time.
  static int64_t opened[3];
  for (int k = 1; k < 3; k++) {
    if (opened[k] == 0) opened[k] = S->base[k] + 5000000000;
    S->base[k] = opened[k];
  }
  // At the same place in a second each time, and ahead of the file system's times, which are real; in
  // nanoseconds, by which a process knows that the file system keeps them, and that it may keep a lease.
  S->base[0] = (S->base[0] / 1000000000 + 1) * 1000000000 + 1;
  S->now = 20000000;
}

void seam_choose(struct seam_choice choice) {
  if (S->choice_count < seam_choices) S->choices[S->choice_count++] = choice;
}

static uint64_t mix(uint64_t *seed) {
  uint64_t z = (*seed += 0x9E3779B97F4A7C15);
  z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9;
  z = (z ^ z >> 27) * 0x94D049BB133111EB;
  return z ^ z >> 31;
}

void seam_prioritize(uint64_t seed, int depth, int length, int is_eager) {
  S->is_prioritized = 1;
  S->is_eager = is_eager;
  for (int p = 0; p < seam_processes; p++) S->priority[p] = 1 + (int)(mix(&seed) % 1000);
  S->change_count = depth - 1;
  for (int k = 0; k < depth - 1; k++) S->changes[k] = (int)(mix(&seed) % (uint64_t)length);
}

int seam_start(int process, void (*body)(int)) {
  int t = new_thread(process);
  S->process[process] = (struct process){.state = ready, .last = nobody};
  S->expected++;
  // Otherwise the child would write it, too.
  fflush(NULL);
  if (numbers != -1) {
    char text[16];
    int length = snprintf(text, sizeof text, "%d", 1000 + 100 * process);
    if (pwrite(numbers, text, length, 0) != length) numbers = -1;
  }
  pid_t id = fork();
  if (id == 0) {
    word_wait(&S->thread[t].word, 0);
    my_process = process;
    me = t;
    body(process);
    end_process();
    _exit(0);
  }
  S->process[process].id = id;
  return id > 0;
}

void seam_line(void) {
  struct thread *thread = &S->thread[me];
  if (S->counts) return;
  thread->state = atLine;
  if (--S->expected > 0) {
    S->asker = nobody;
    S->wanted = nobody;
    hand(pick(nobody, my_process));
    word_wait(&thread->word, 0);
  } else {
    for (int t = 0; t < S->thread_count; t++)
      if (S->thread[t].state == atLine) S->thread[t].state = ready;
    S->counts = 1;
    S->line = S->now;
    S->step = 0;
    S->made_count = 0;
    // The first step decides who begins.
    record(c_seek, 0, NULL, "begin");
    decide(0);
  }
}

static void bury(int p, int status) {
  struct process *process = &S->process[p];
  process->state = gone;
  process->status = WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status);
  for (int t = 0; t < S->thread_count; t++)
    if (S->thread[t].process == p) S->thread[t].state = gone;
  // Its files were closed.
  S->mutations++;
}

static void act(struct seam_choice choice) {
  struct process *process = &S->process[choice.process];
  int status;
  if (choice.action == seam_stop && process->state == ready) {
    kill(process->id, SIGSTOP);
    waitpid(process->id, &status, WUNTRACED);
    process->state = waiting;
    process->was_stopped = 1;
  } else if (choice.action == seam_continue && process->state == waiting) {
    kill(process->id, SIGCONT);
    process->state = ready;
  } else if (choice.action == seam_kill && (process->state == ready || process->state == waiting)) {
    kill(process->id, SIGKILL);
    waitpid(process->id, &status, 0);
    bury(choice.process, status);
    process->status = -1;
  } else {
    return;
  }
  made(choice.action, choice.process);
}

static void kill_all(void) {
  for (int p = 0; p < seam_processes; p++) {
    struct process *process = &S->process[p];
    if (process->state != ready && process->state != waiting) continue;
    kill(process->id, SIGKILL);
    waitpid(process->id, NULL, 0);
    process->state = gone;
    process->status = -2;
  }
}

// Shows where each thread is that the kernel knows: names, waits and system calls.
static void show_threads(void) {
  for (int p = 0; p < seam_processes; p++) {
    if (S->process[p].state != ready) continue;
    char command[160];
    snprintf(command, sizeof command,
             "cd /proc/%d/task && for t in *; do echo $t $(cat $t/comm $t/wchan $t/syscall); done >&2",
             S->process[p].id);
    if (system(command)) perror("sh");
  }
}

enum seam_end seam_run(void) {
  S->asker = nobody;
  S->wanted = nobody;
  int process = 0;
  int next = pick(nobody, 0);
  while (1) {
    if (next != nobody) hand(next);
    int before = S->step;
    int pauses = 0;
    while (next != nobody && !word_wait(&S->parent, 5000)) {
      // A thread that does not give way; once, it may be the machine that was paused.
      pauses = S->step == before ? pauses + 1 : 0;
      if (pauses == 2) {
        show_threads();
        S->end = seam_stuck, next = nobody;
      }
      before = S->step;
    }
    if (S->end) {
      kill_all();
      return S->end;
    }
    int running = S->asker_stays ? S->asker : nobody;
    if (S->asker != nobody) process = S->thread[S->asker].process;
    if (S->ended != nobody) {
      int status = 0;
      process = S->ended;
      waitpid(S->process[process].id, &status, 0);
      bury(process, status);
      S->ended = nobody;
      running = nobody;
      if (!S->counts && S->expected > 0) S->expected--;
    }
    for (int k = 0; k < S->asked_count; k++) act(S->asked[k]);
    S->asked_count = 0;
    S->asker = nobody;
    S->asker_stays = 0;
    if (running != nobody && S->thread[running].state == gone) running = nobody;
    next = pick(running, process);
    if (next != nobody) continue;
    // Nobody can go on: a stopped process is continued; without one, it is the end.
    int alive = 0, stopped = nobody;
    for (int p = seam_processes - 1; p >= 0; p--) {
      if (S->process[p].state == waiting) stopped = p;
      if (S->process[p].state == ready) alive = 1;
    }
    if (stopped != nobody) {
      act((struct seam_choice){0, seam_continue, stopped});
      S->made_count--;
      next = pick(nobody, stopped);
      if (next != nobody) continue;
    }
    if (alive || stopped != nobody) {
      kill_all();
      return seam_deadlock;
    }
    S->counts = 0;
    S->expected = 0;
    S->is_prioritized = 0;
    return seam_finished;
  }
}

// MARK: For the explorer

int seam_step_count(void) { return S->step < seam_steps ? S->step : seam_steps; }
struct seam_step seam_step_at(int index) { return S->steps[index]; }
const char *seam_step_text(int index) { return S->text[index]; }
const char *seam_call_name(int call) { return call_names[call]; }
int seam_made_count(void) { return S->made_count; }
struct seam_choice seam_made_at(int index) { return S->made[index]; }
int seam_status(int process) { return S->process[process].status; }
const char *seam_notes(int process) { return S->notes[process]; }
uint64_t seam_stamp(void) { return ++S->stamp; }
int64_t seam_now(void) { return S->now; }
int64_t seam_silence(void) { return S->silence; }
int seam_was_stopped(int process) { return S->process[process].was_stopped; }

void seam_note(const char *text) {
  if (my_process == nobody) return;
  char *notes = S->notes[my_process];
  size_t used = strlen(notes);
  snprintf(notes + used, seam_note_bytes - used, "%s\n", text);
}

int64_t seam_real_nanoseconds(void) {
  struct timespec time;
  REAL(clock_gettime)(CLOCK_MONOTONIC, &time);
  return nanoseconds(&time);
}

static uint64_t add_hash(uint64_t hash, const void *bytes, size_t count) {
  for (size_t k = 0; k < count; k++) hash = (hash ^ ((const uint8_t *)bytes)[k]) * 1099511628211u;
  return hash;
}

// Notes of who did what, and when, differ each time, and decide nothing.
static int is_note(const char *name) {
  static const char *const notes[] = {"x-", "taken.plist", "last.plist", "member-", "entering-"};
  for (size_t k = 0; k < sizeof notes / sizeof notes[0]; k++)
    if (strncmp(name, notes[k], strlen(notes[k])) == 0) return 1;
  return 0;
}

// Zeros the times in binary property lists: dates, nanoseconds since 1970, and those of the record of a
// publication.
static void leave_out_times(char *bytes, ssize_t count) {
  for (ssize_t k = 0; k + 36 < count; k++) {
    if (memcmp(bytes + k, "\x33\x41", 2) == 0 || memcmp(bytes + k, "\x13\x18", 2) == 0)
      memset(bytes + k + 1, 0, 8);
    if (memcmp(bytes + k, "\x4f\x10", 2) != 0 || (bytes[k + 3] != 1 && bytes[k + 3] != 2)) continue;
    memset(bytes + k + 8, 0, 8);
    memset(bytes + k + 24, 0, 12);
  }
}

uint64_t seam_tree_hash(const char *path) {
  DIR *directory = opendir(path);
  struct dirent *entry;
  uint64_t sum = 1;
  while (directory && (entry = readdir(directory))) {
    char child[1024], bytes[4096];
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
    snprintf(child, sizeof child, "%s/%s", path, entry->d_name);
    uint64_t hash = hash_component(entry->d_name, strlen(entry->d_name)) + 14695981039346656037u;
    if (entry->d_type == DT_DIR) {
      uint64_t inner = seam_tree_hash(child);
      hash = add_hash(hash, &inner, sizeof inner);
    } else {
      struct stat status;
      int file = open(child, O_RDONLY | O_NONBLOCK);
      ssize_t count = is_note(entry->d_name) ? 0 : read(file, bytes, sizeof bytes);
      leave_out_times(bytes, count);
      if (fstat(file, &status) == 0) hash = add_hash(hash, &status.st_size, sizeof status.st_size);
      hash = add_hash(hash, bytes, count > 0 ? (size_t)count : 0);
      close(file);
    }
    sum += hash;
  }
  if (directory) closedir(directory);
  return sum;
}

int64_t seam_used_nanoseconds(void) {
  struct rusage own, others;
  getrusage(RUSAGE_SELF, &own);
  getrusage(RUSAGE_CHILDREN, &others);
  int64_t sum = 0;
  struct timeval *times[] = {&own.ru_utime, &own.ru_stime, &others.ru_utime, &others.ru_stime};
  for (int k = 0; k < 4; k++) sum += times[k]->tv_sec * 1000000000ll + times[k]->tv_usec * 1000ll;
  return sum;
}

int seam_copy_tree(const char *from, const char *to) {
  DIR *directory = opendir(from);
  struct dirent *entry;
  if (!directory || (mkdir(to, 0700) == -1 && errno != EEXIST)) return -1;
  while ((entry = readdir(directory))) {
    char source[1024], target[1024];
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
    snprintf(source, sizeof source, "%s/%s", from, entry->d_name);
    snprintf(target, sizeof target, "%s/%s", to, entry->d_name);
    if (entry->d_type == DT_DIR) {
      if (seam_copy_tree(source, target) == -1) return -1;
      continue;
    }
    char bytes[65536];
    int out = open(target, O_WRONLY | O_CREAT | O_EXCL, 0600);
    if (out == -1) continue;
    int in = open(source, O_RDONLY);
    ssize_t count;
    while ((count = read(in, bytes, sizeof bytes)) > 0)
      if (write(out, bytes, count) != count) return -1;
    close(in);
    close(out);
  }
  closedir(directory);
  return 0;
}

void seam_name_open(const char *path) {
  struct stat wanted, status;
  if (stat(path, &wanted) == -1) return;
  for (int file = 3; file < 64; file++)
    if (fstat(file, &status) == 0 && status.st_ino == wanted.st_ino && status.st_dev == wanted.st_dev)
      snprintf(named[file].path, path_bytes, "./%s", strrchr(path, '/') + 1);
}

void seam_remove_tree(const char *path, const char *except) {
  DIR *directory = opendir(path);
  struct dirent *entry;
  while (directory && (entry = readdir(directory))) {
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
    char child[1024];
    snprintf(child, sizeof child, "%s/%s", path, entry->d_name);
    if (entry->d_type == DT_DIR) {
      seam_remove_tree(child, except);
      rmdir(child);
    } else if (strcmp(entry->d_name, except) != 0) {
      unlink(child);
    }
  }
  if (directory) closedir(directory);
}
