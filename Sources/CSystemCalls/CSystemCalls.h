// What Glibc's Swift module lacks, as static inline functions: nothing to compile, nothing to link.
#ifndef C_SYSTEM_CALLS_H
#define C_SYSTEM_CALLS_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#endif
