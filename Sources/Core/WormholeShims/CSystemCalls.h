// Functions that Glibc's Swift module lacks, as static inline functions: nothing to compile or link.
// Each is the plain call of its man page; errors are -1 and errno, as there.
#ifndef C_SYSTEM_CALLS_H
#define C_SYSTEM_CALLS_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

enum {
  csys_RENAME_NOREPLACE = 1,
  csys_RENAME_EXCHANGE = 2,
  csys_RESOLVE_NO_XDEV = 0x01,
  csys_RESOLVE_NO_SYMLINKS = 0x04,
  csys_RESOLVE_BENEATH = 0x08,
  csys_O_PATH = 010000000,
  // Scripts redirect the numbers up to 9, and shells take free ones from 10 up for themselves.
  csys_INHERITED = 10,
  csys_SEEK_DATA = 3,
  csys_SEEK_HOLE = 4,
};

// renameat2(2), Linux 3.15.
static inline int csys_renameat2(
    int old_directory, const char *_Nonnull old_path, int new_directory,
    const char *_Nonnull new_path, unsigned int flags) {
  return (int)syscall(SYS_renameat2, old_directory, old_path, new_directory, new_path, flags);
}

// openat2(2), Linux 5.6.
static inline int csys_openat2(
    int directory, const char *_Nonnull path, uint64_t flags, uint64_t mode, uint64_t resolve) {
  struct {
    uint64_t flags, mode, resolve;
  } how = {flags, mode, resolve};
#ifndef SYS_openat2
#define SYS_openat2 437
#endif
  return (int)syscall(SYS_openat2, directory, path, &how, sizeof how);
}

// Returns how many bytes of a relative path come before its last name; 0 if nobody can have put a link there,
// because the path has no directory, or only "..".
static inline size_t csys_parent(const char *_Nonnull path) {
  size_t end = strlen(path), named = 0;
  if (path[0] == '/') return 0;
  while (end > 0 && path[end - 1] == '/') end--;
  while (end > 0 && path[end - 1] != '/') end--;
  for (size_t start = 0; start < end; start++) {
    size_t length = strcspn(path + start, "/");
    if (length > 2 || strncmp(path + start, "..", length) != 0) named = 1;
    start += length;
  }
  return named ? end : 0;
}

// Opens the first bytes of a path as a directory, and follows no link on the way (ENOTDIR).
static inline int csys_open_parent(int directory, const char *_Nonnull path, size_t bytes) {
  int current = directory;
  for (size_t start = 0; start < bytes;) {
    char name[256];
    size_t length = strcspn(path + start, "/");
    if (length == 0) {
      start++;
      continue;
    }
    int next = -1;
    if (length >= sizeof name) {
      errno = ENAMETOOLONG;
    } else {
      memcpy(name, path + start, length);
      name[length] = 0;
      // As <fcntl.h> has it for _GNU_SOURCE.
      next = openat(current, name, 010000000 /* O_PATH */ | O_NOFOLLOW | O_DIRECTORY | O_CLOEXEC);
    }
    int failure = errno;
    if (current != directory) close(current);
    errno = failure;
    if (next == -1) return -1;
    current = next;
    start += length;
  }
  return current;
}

// getdents64(2): the entries of a directory without opendir(3)'s allocation.
static inline long csys_getdents64(int directory, void *_Nonnull buffer, size_t size) {
  return syscall(SYS_getdents64, directory, buffer, size);
}

// ioctl_ficlone(2), Linux 4.5: shares the content of one file with another, empty one.
static inline int csys_clone_file(int target, int source) {
  return ioctl(target, _IOW(0x94, 9, int) /* FICLONE */, source);
}

// copy_file_range(2), Linux 4.5.
static inline long csys_copy_file_range(
    int source, int64_t *_Nonnull source_offset, int target, int64_t *_Nonnull target_offset,
    size_t count) {
  return syscall(SYS_copy_file_range, source, source_offset, target, target_offset, count, 0);
}

// listxattr(2) and its relatives for an open file. Not from <sys/xattr.h>: that includes <sys/types.h>,
// whose fd_set with _GNU_SOURCE differs from the one in Glibc's and Dispatch's modules. The compiler's
// reaction depends on the order in which it reads them.
static inline long csys_list_attributes(int file, void *_Nullable list, size_t size) {
  return syscall(SYS_flistxattr, file, list, size);
}
static inline long csys_get_attribute(
    int file, const char *_Nonnull name, void *_Nullable value, size_t size) {
  return syscall(SYS_fgetxattr, file, name, value, size);
}
static inline int csys_set_attribute(
    int file, const char *_Nonnull name, const void *_Nullable value, size_t size) {
  return (int)syscall(SYS_fsetxattr, file, name, value, size, 0);
}
static inline int csys_set_path_attribute(
    const char *_Nonnull path, const char *_Nonnull name, const void *_Nullable value,
    size_t size) {
  return (int)syscall(SYS_lsetxattr, path, name, value, size, 0);
}
static inline int csys_remove_attribute(int file, const char *_Nonnull name) {
  return (int)syscall(SYS_fremovexattr, file, name);
}

// sync_file_range(2), Linux 2.6.17: starts to write the whole file back and waits for its content.
static inline int csys_write_back(int file) {
  enum { wait_before = 1, write = 2, wait_after = 4 };
  return (int)syscall(
      SYS_sync_file_range, file, (int64_t)0, (int64_t)0, wait_before | write | wait_after);
}

// The same, without a wait.
static inline int csys_start_write_back(int file) {
  enum { write = 2 };
  return (int)syscall(SYS_sync_file_range, file, (int64_t)0, (int64_t)0, write);
}

// pidfd_open(2), Linux 5.3.
static inline int csys_pidfd_open(int pid) {
#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
  return (int)syscall(SYS_pidfd_open, pid, 0);
}

// pidfd_send_signal(2), Linux 5.1.
static inline int csys_pidfd_send_signal(int descriptor, int signal) {
#ifndef SYS_pidfd_send_signal
#define SYS_pidfd_send_signal 424
#endif
  return (int)syscall(SYS_pidfd_send_signal, descriptor, signal, NULL, 0);
}

// waitid(2) for the end of a child given by its descriptor, Linux 5.4. The signal is 0 for a child
// that exited; a siginfo_t does not import into Swift with its union.
static inline int csys_wait_pidfd(int descriptor, int *_Nonnull status, int *_Nonnull signal) {
  enum { by_descriptor = 3 /* P_PIDFD */, ended = 4 /* WEXITED */ };
  siginfo_t info;
  memset(&info, 0, sizeof info);
  if (syscall(SYS_waitid, by_descriptor, descriptor, &info, ended, NULL) == -1) return -1;
  *status = info.si_code == CLD_EXITED ? info.si_status : 0;
  *signal = info.si_code == CLD_EXITED ? 0 : info.si_status;
  return 0;
}

// prctl(2), PR_SET_CHILD_SUBREAPER, Linux 3.4: a process whose starter has ended becomes this process's child, if
// this process is the nearest of those above it that have called this.
static inline int csys_adopt_orphans(void) { return (int)syscall(SYS_prctl, 36, 1, 0, 0, 0); }

// waitid(2): the number of a child that has ended, and stays to be waited for; 0 if all children run.
static inline int csys_ended_child(void) {
  enum { any = 0 /* P_ALL */, at_once = 1 /* WNOHANG */, ended = 4 /* WEXITED */, stays = 0x01000000 /* WNOWAIT */ };
  siginfo_t info;
  memset(&info, 0, sizeof info);
  if (syscall(SYS_waitid, any, 0, &info, ended | at_once | stays, NULL) == -1) return -1;
  return info.si_pid;
}

// waitid(2) for a child that has ended; its status is dropped.
static inline int csys_reap(int child) {
  siginfo_t info;
  return (int)syscall(SYS_waitid, 1 /* P_PID */, child, &info, 4 /* WEXITED */, NULL);
}

// The setup of a new process before it becomes the program; see csys_spawn.
struct csys_beginning {
  // The sources of its standard descriptors.
  int standard[3];
  // The source of its descriptor csys_INHERITED, or -1.
  int inherited;
  // For a process that outlives its parent: the file of its output, in its own session. Otherwise null.
  const char *_Nullable output;
  // Whether it is killed when the thread that started it ends.
  int ends_with_parent;
  // Its current directory, or -1 for that of its parent.
  int directory;
};

// Closes all descriptors from the lowest up, except two.
static inline void csys_close_others(int lowest, int lower, int higher) {
#ifndef SYS_close_range
#define SYS_close_range 436
#endif
  int ranges[3][2] = {{lowest, lower - 1}, {lower + 1, higher - 1}, {higher + 1, INT32_MAX}};
  for (int index = 0; index < 3; index++) {
    if (ranges[index][0] > ranges[index][1]) continue;
    if (syscall(SYS_close_range, ranges[index][0], ranges[index][1], 0) != -1) continue;
    // On Linux before 5.9, or in a sandbox.
    for (int number = ranges[index][0]; number <= ranges[index][1] && number < 65536; number++)
      close(number);
  }
}

// As execvpe(3), but no shell runs a file that the kernel does not accept as a program.
static inline void csys_execute(
    const char *_Nonnull program, char *_Nullable const *_Nonnull arguments,
    char *_Nullable const *_Nonnull environment) {
  size_t length = strlen(program);
  if (length == 0 || strchr(program, '/') != NULL) {
    execve(program, arguments, environment);
    return;
  }
  // By hand: <stdlib.h> brings in <sys/types.h>, as <sys/xattr.h> does.
  const char *path = "/bin:/usr/bin";
  for (char **variable = environ; variable != NULL && *variable != NULL; variable++)
    if (strncmp(*variable, "PATH=", 5) == 0) {
      path = *variable + 5;
      break;
    }
  int failure = ENOENT;
  while (1) {
    size_t prefix = strcspn(path, ":");
    char file[4096];
    if (prefix + 1 + length < sizeof file) {
      memcpy(file, path, prefix);
      // An empty entry is the current directory.
      size_t start = prefix == 0 ? 0 : prefix + 1;
      if (prefix != 0) file[prefix] = '/';
      memcpy(file + start, program, length + 1);
      execve(file, arguments, environment);
      if (errno == EACCES) failure = EACCES;
      else if (errno != ENOENT && errno != ENOTDIR) return;
    }
    if (path[prefix] == 0) break;
    path += prefix + 1;
  }
  errno = failure;
}

// Runs in the new process, which has one thread, and memory whose locks others may hold: only calls
// that signal-safety(7) allows. Returns only after a failure, with errno.
static inline void csys_become(
    const struct csys_beginning *_Nonnull beginning, const char *_Nonnull program,
    char *_Nullable const *_Nonnull arguments, char *_Nullable const *_Nonnull environment,
    int parent, int report) {
  if (beginning->ends_with_parent) {
    if (syscall(SYS_prctl, 1 /* PR_SET_PDEATHSIG */, SIGKILL, 0, 0, 0) == -1) return;
    // No signal reports the parent's end before that call.
    if (getppid() != parent) _exit(127);
  }
  if (beginning->directory != -1 && fchdir(beginning->directory) == -1) return;
  // Handlers are functions of the old program.
  for (int number = 1; number < NSIG; number++) {
    struct sigaction action;
    if (sigaction(number, NULL, &action) == -1 || action.sa_handler == SIG_DFL) continue;
    if (action.sa_handler == SIG_IGN && number != SIGPIPE && number != SIGXFSZ) continue;
    memset(&action, 0, sizeof action);
    action.sa_handler = SIG_DFL;
    sigaction(number, &action, NULL);
  }
  // First aside, then to their numbers, so that no needed descriptor is overwritten.
  int aside = beginning->inherited == -1 ? 3 : csys_INHERITED + 1;
  int sources[4] = {-1, -1, -1, -1};
  if (beginning->output) {
    if (setsid() == -1 || chdir("/") == -1) return;
    int output = open(
        beginning->output, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (output == -1) return;
    int input = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (input == -1) return;
    sources[0] = fcntl(input, F_DUPFD_CLOEXEC, aside);
    sources[1] = sources[2] = fcntl(output, F_DUPFD_CLOEXEC, aside);
  } else {
    for (int index = 0; index < 3; index++)
      sources[index] = fcntl(beginning->standard[index], F_DUPFD_CLOEXEC, aside);
  }
  if (beginning->inherited != -1) {
    sources[3] = fcntl(beginning->inherited, F_DUPFD_CLOEXEC, aside);
    if (sources[3] == -1) return;
  }
  report = fcntl(report, F_DUPFD_CLOEXEC, aside);
  if (sources[0] == -1 || sources[1] == -1 || sources[2] == -1 || report == -1) return;
  for (int index = 0; index < 3; index++)
    if (dup2(sources[index], index) == -1) return;
  if (sources[3] != -1 && dup2(sources[3], csys_INHERITED) == -1) return;
  // Also descriptors that other code in this process opened without close-on-exec.
  csys_close_others(3, sources[3] == -1 ? report : csys_INHERITED, report);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  csys_execute(program, arguments, environment);
  int failure = errno;
  if (write(report, &failure, sizeof failure) == -1) _exit(126);
  _exit(127);
}

// Gives each standard descriptor that is closed to a file that can be neither read nor written. The next file
// that this process opens would get its number, and with it what programs write to it.
static inline void csys_fill_standard_descriptors(void) {
  for (int number = 0; number < 3; number++)
    if (fcntl(number, F_GETFD) == -1 && open("/", csys_O_PATH) == -1) return;
}

struct csys_start {
  const struct csys_beginning *_Nonnull beginning;
  const char *_Nonnull program;
  char *_Nullable const *_Nonnull arguments;
  char *_Nullable const *_Nonnull environment;
  int parent, report;
};

// The new process's function. If it does not become the program, it writes the reason to the pipe.
static int csys_begin(void *_Nonnull context) {
  const struct csys_start *start = (const struct csys_start *)context;
  csys_become(
      start->beginning, start->program, start->arguments, start->environment, start->parent,
      start->report);
  int failure = errno;
  if (write(start->report, &failure, sizeof failure) == -1) _exit(126);
  _exit(127);
}

// As in <sched.h>, which Glibc's module does not export.
extern int clone(
    int (*_Nonnull function)(void *_Nonnull), void *_Nonnull stack, int flags,
    void *_Nonnull argument, ...);

// Only a program that was built with ThreadSanitizer has it.
extern void __tsan_init(void) __attribute__((weak));

// As clone(2) below, but with a copy of the memory: ThreadSanitizer's own clone fails a check of its own when
// the memory is shared, and it knows fork(2). The descriptor comes a moment after the process.
static inline int csys_fork(struct csys_start *_Nonnull start, int *_Nonnull handle) {
  int process = fork();
  if (process == 0) csys_begin(start);
  if (process == -1) return -1;
  *handle = csys_pidfd_open(process);
  if (*handle != -1) return process;
  int failure = errno;
  siginfo_t info;
  kill(process, SIGKILL);
  while (syscall(SYS_waitid, 1 /* P_PID */, process, &info, 4 /* WEXITED */, NULL) == -1 &&
         errno == EINTR)
    continue;
  errno = failure;
  return -1;
}

// Starts a program as posix_spawn(3) does, with two additions: the process's descriptor comes with the
// process (CLONE_PIDFD, Linux 5.2), so that no program runs if there is no descriptor left; and the
// program may end with its parent. As there, the new process shares the memory, and this thread waits
// until it is the program (CLONE_VM, CLONE_VFORK): copying a large process takes milliseconds, in which
// the copy also shares all locks. Returns the number of the process; -1 and errno if it has not become
// the program.
static inline int csys_spawn(
    const struct csys_beginning *_Nonnull beginning, const char *_Nonnull program,
    char *_Nullable const *_Nonnull arguments, char *_Nullable const *_Nonnull environment,
    int *_Nonnull handle) {
  enum {
    with_memory = 0x100 /* CLONE_VM */, with_descriptor = 0x1000 /* CLONE_PIDFD */,
    waiting = 0x4000 /* CLONE_VFORK */, by_descriptor = 3, ended = 4
  };
  // This frame lives while the new process uses it as its stack, from its end.
  char stack[64 << 10] __attribute__((aligned(16)));
  int report[2];
  if (pipe2(report, O_CLOEXEC) == -1) return -1;
  // No handler of this program runs in the new process.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  struct csys_start start = {
      beginning, program, arguments, environment, getpid(), report[1]};
  int process = __tsan_init
      ? csys_fork(&start, handle)
      : clone(
            csys_begin, stack + sizeof stack, with_memory | waiting | with_descriptor | SIGCHLD,
            &start, handle, NULL, NULL);
  int failure = errno;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  close(report[1]);
  if (process != -1) {
    failure = 0;
    // It never waits, so a signal hardly interrupts it once.
    for (int tries = 0; tries < 1000; tries++)
      if (read(report[0], &failure, sizeof failure) != -1 || errno != EINTR) break;
  }
  close(report[0]);
  if (process != -1 && failure != 0) {
    siginfo_t info;
    while (syscall(SYS_waitid, by_descriptor, *handle, &info, ended, NULL) == -1 && errno == EINTR)
      continue;
    close(*handle);
    process = -1;
  }
  if (process == -1) errno = failure;
  return process;
}

// eventfd(2), close-on-exec and non-blocking.
static inline int csys_eventfd(void) {
  return (int)syscall(SYS_eventfd2, 0, O_CLOEXEC | O_NONBLOCK);
}

// memfd_create(2), Linux 3.17, close-on-exec.
static inline int csys_memory_file(const char *_Nonnull name) {
  return (int)syscall(SYS_memfd_create, name, 1 /* MFD_CLOEXEC */);
}

// A page with a first byte of 1 that a forked child sees as 0, however it was forked (madvise(2),
// MADV_WIPEONFORK, Linux 4.14).
static inline const unsigned char *_Nullable csys_own_page(void) {
  long size = sysconf(_SC_PAGESIZE);
  void *page = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return NULL;
  if (madvise(page, size, 18 /* MADV_WIPEONFORK */) != 0) {
    munmap(page, size);
    return NULL;
  }
  *(unsigned char *)page = 1;
  return (const unsigned char *)page;
}

// Sleeps while the number at an address is the expected one (futex(2), FUTEX_WAIT).
static inline int csys_await_change(uintptr_t word, uint32_t expected, long nanoseconds) {
  struct timespec limit = {nanoseconds / 1000000000, nanoseconds % 1000000000};
  return (int)syscall(SYS_futex, word, 0, expected, &limit, NULL, 0);
}

// Adds one to the number at an address, and wakes one sleeper there (futex(2), FUTEX_WAKE_OP). The
// condition for a second sleeper holds only at the largest number.
static inline int csys_add_and_wake(uintptr_t word) {
  uint32_t add_one = 1u << 28 | 1u << 12 | 0xfff;
  return (int)syscall(SYS_futex, word, 5, 1, (void *)0, word, add_one);
}

// pipe2(2), close-on-exec.
static inline int csys_pipe(int *_Nonnull ends) {
  return pipe2(ends, O_CLOEXEC);
}

// The environment (environ(7)); Glibc and this module would both declare the variable.
static inline char *_Nullable *_Nonnull csys_environment(void) {
  return environ;
}

// Of Swift's runtime: the arguments of the process, which it reads from /proc otherwise.
extern void _swift_stdlib_overrideUnsafeArgvArgc(char *_Nullable *_Nonnull arguments, int count);

// The name of the calling thread, at most 15 bytes (pthread_setname_np(3)).
static inline void csys_name_thread(const char *_Nonnull name) {
  pthread_setname_np(pthread_self(), name);
}

// The size of a terminal (ioctl TIOCGWINSZ); zeros if the descriptor is none.
static inline struct winsize csys_terminal_size(int descriptor) {
  struct winsize size;
  return ioctl(descriptor, TIOCGWINSZ, &size) == -1 ? (struct winsize){0} : size;
}

// The kind of file system that holds an open file (fstatfs(2)).
static inline int csys_file_system_magic(int descriptor, uint32_t *_Nonnull magic) {
  struct statfs status;
  if (fstatfs(descriptor, &status) == -1) return -1;
  *magic = (uint32_t)status.f_type;
  return 0;
}

// strerror_r in its POSIX form: fills the buffer, returns 0.
static inline void csys_error_text(int code, char *_Nonnull buffer, size_t size) {
  const char *text = strerror_r(code, buffer, size);
  if (text != buffer) {
    strncpy(buffer, text, size - 1);
    buffer[size - 1] = 0;
  }
}

#endif
