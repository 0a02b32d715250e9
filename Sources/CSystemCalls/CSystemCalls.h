// What Glibc's Swift module lacks, as static inline functions: nothing to compile, nothing to link.
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
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

enum {
  csys_RENAME_NOREPLACE = 1,
  csys_RENAME_EXCHANGE = 2,
  csys_RESOLVE_NO_XDEV = 0x01,
  csys_RESOLVE_NO_MAGICLINKS = 0x02,
  csys_RESOLVE_NO_SYMLINKS = 0x04,
  csys_RESOLVE_BENEATH = 0x08,
  csys_O_PATH = 010000000,
  csys_O_CLOEXEC = 02000000,
  csys_SPAWN_SETSID = 0x80,
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
// whose fd_set is another with _GNU_SOURCE than the one in Glibc's and Dispatch's modules, and whether
// the compiler minds depends on the order in which it meets them.
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
static inline int csys_remove_attribute(int file, const char *_Nonnull name) {
  return (int)syscall(SYS_fremovexattr, file, name);
}

// sync_file_range(2), Linux 2.6.17: starts to write the whole file back and waits for its content.
static inline int csys_write_back(int file) {
  enum { wait_before = 1, write = 2, wait_after = 4 };
  return (int)syscall(
      SYS_sync_file_range, file, (int64_t)0, (int64_t)0, wait_before | write | wait_after);
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

// fcntl(2) F_DUPFD_CLOEXEC: the lowest free number that is no standard descriptor.
static inline int csys_duplicate_above_standard(int descriptor) {
  return fcntl(descriptor, F_DUPFD_CLOEXEC, 3);
}

// The child of a posix_spawn closes every descriptor from the lowest up (glibc 2.34; nothing before).
// Under a name of its own: <spawn.h> brings in an fd_set that differs from that of other modules.
#if __GLIBC_PREREQ(2, 34)
int csys_close_in_child(void *_Nonnull actions, int lowest)
    __asm__("posix_spawn_file_actions_addclosefrom_np");
#else
static inline int csys_close_in_child(void *_Nonnull actions, int lowest) {
  return 0;
}
#endif

// The child of a posix_spawn changes its directory (glibc 2.29; nothing before).
#if __GLIBC_PREREQ(2, 29)
int csys_change_directory_in_child(void *_Nonnull actions, const char *_Nonnull path)
    __asm__("posix_spawn_file_actions_addchdir_np");
#else
static inline int csys_change_directory_in_child(
    void *_Nonnull actions, const char *_Nonnull path) {
  return 0;
}
#endif

// eventfd(2), close-on-exec and non-blocking.
static inline int csys_eventfd(void) {
  return (int)syscall(SYS_eventfd2, 0, O_CLOEXEC | O_NONBLOCK);
}

// memfd_create(2), Linux 3.17, close-on-exec.
static inline int csys_memory_file(const char *_Nonnull name) {
  return (int)syscall(SYS_memfd_create, name, 1 /* MFD_CLOEXEC */);
}

// pipe2(2), close-on-exec.
static inline int csys_pipe(int *_Nonnull ends) {
  return pipe2(ends, O_CLOEXEC);
}

// The environment (environ(7)); Glibc and this module would both declare the variable.
static inline char *_Nullable *_Nonnull csys_environment(void) {
  return environ;
}

// The name of the calling thread, at most 15 bytes (pthread_setname_np(3)).
static inline void csys_name_thread(const char *_Nonnull name) {
  pthread_setname_np(pthread_self(), name);
}

// The columns of a terminal (ioctl TIOCGWINSZ).
static inline int csys_terminal_columns(int descriptor) {
  struct winsize size;
  if (ioctl(descriptor, TIOCGWINSZ, &size) == -1) return -1;
  return size.ws_col;
}

// The lines of a terminal, by the same call.
static inline int csys_terminal_rows(int descriptor) {
  struct winsize size;
  if (ioctl(descriptor, TIOCGWINSZ, &size) == -1) return -1;
  return size.ws_row;
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
