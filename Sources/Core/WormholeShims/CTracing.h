// Counts the instructions of another process with ptrace(2), one step at a time, so the result is the same
// on a busy machine. Static inline functions, as in CSystemCalls; only measurements use them.
#ifndef C_TRACING_H
#define C_TRACING_H

#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#if defined(__aarch64__)
// Without <sys/uio.h>, whose fd_set clashes with the one of Swift's module Glibc.
#include <bits/types/struct_iovec.h>
#endif

enum {
  // The signal of a mark. Its default action is to be ignored.
  ctrace_mark = SIGURG,
};

// What a traced process did between two marks.
struct ctrace_work {
  // Of the program, not of the kernel, and not of the kernel's code in the program.
  uint64_t instructions;
  // The number of times that it came to the address that is counted.
  uint64_t visits;
};

// Makes the thread that started this process its tracer. From now on each signal stops the calling thread.
static inline long ctrace_be_traced(void) { return ptrace(PTRACE_TRACEME, 0, NULL, NULL); }

// Stops the calling thread, which its tracer awaits.
static inline int ctrace_stop_at_mark(void) { return raise(ctrace_mark); }

// Returns the address of the next instruction; 0 if the processor is not supported.
static inline uint64_t ctrace_address(int process) {
#if defined(__x86_64__)
  return (uint64_t)ptrace(
      PTRACE_PEEKUSER, process, (void *)offsetof(struct user_regs_struct, rip), NULL);
#elif defined(__aarch64__)
  struct user_regs_struct registers;
  struct iovec area = {&registers, sizeof registers};
  if (ptrace(PTRACE_GETREGSET, process, (void *)NT_PRSTATUS, &area) != 0) return 0;
  return registers.pc;
#else
  return 0;
#endif
}

// The addresses of the kernel's code in a process (vdso(7)), which reads the clock again if a tick comes in
// between, as it does if each step takes long. Empty if there is none.
struct ctrace_vdso {
  unsigned long first, end;
};

static inline struct ctrace_vdso ctrace_vdso(int process) {
  struct ctrace_vdso vdso = {0, 0};
  char path[32], line[512];
  snprintf(path, sizeof path, "/proc/%d/maps", process);
  FILE *maps = fopen(path, "re");
  while (maps && fgets(line, sizeof line, maps))
    if (strstr(line, "[vdso]")) sscanf(line, "%lx-%lx", &vdso.first, &vdso.end);
  if (maps) fclose(maps);
  return vdso;
}

// Lets a stopped process run to its next mark, and counts on the way if `work` is not null. Returns 0, or
// -1: then errno is ESRCH for a process that has ended.
static inline int ctrace_continue(
    int process, uint64_t counted, struct ctrace_vdso vdso, struct ctrace_work *_Nullable work) {
  int passed = 0;
  while (1) {
    if (ptrace(work ? PTRACE_SINGLESTEP : PTRACE_CONT, process, NULL, (void *)(long)passed) != 0)
      return -1;
    int status;
    while (waitpid(process, &status, __WALL) < 0)
      if (errno != EINTR) return -1;
    if (!WIFSTOPPED(status)) {
      errno = ESRCH;
      return -1;
    }
    int signal = WSTOPSIG(status);
    if (signal == ctrace_mark) return 0;
    passed = signal == SIGTRAP ? 0 : signal;
    if (!work || passed) continue;
    uint64_t address = ctrace_address(process);
    if (address < vdso.first || address >= vdso.end) work->instructions++;
    if (counted && address == counted) work->visits++;
  }
}

// Waits for the first mark of a process that this thread started.
static inline int ctrace_await(int process) {
  int status;
  while (waitpid(process, &status, __WALL | WUNTRACED) < 0)
    if (errno != EINTR) return -1;
  if (WIFSTOPPED(status) && WSTOPSIG(status) == ctrace_mark) return 0;
  errno = ESRCH;
  return -1;
}

#endif
