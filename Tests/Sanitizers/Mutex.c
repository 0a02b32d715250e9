// For ThreadSanitizer. Synchronization.Mutex is taken and freed by atomic operations in our own code, which
// it sees, unless a thread has to wait: then inside the standard library, which was not built with it.
// These take the places of those two functions, and tell it.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>

#define SWIFT __attribute__((swiftcall))
#define HANDLE __attribute__((swift_context)) void *handle
#define LOCK "$s15Synchronization12_MutexHandleV9_lockSlowyys6UInt32VF"
#define UNLOCK "$s15Synchronization12_MutexHandleV11_unlockSlowyyF"

extern void __tsan_acquire(void *);
extern void __tsan_release(void *);

SWIFT void lock_slowly(uint32_t thread, HANDLE) __asm__(LOCK);
SWIFT void unlock_slowly(HANDLE) __asm__(UNLOCK);

SWIFT void lock_slowly(uint32_t thread, HANDLE) {
  ((SWIFT void (*)(uint32_t, HANDLE))dlsym(RTLD_NEXT, LOCK))(thread, handle);
  __tsan_acquire(handle);
}

SWIFT void unlock_slowly(HANDLE) {
  __tsan_release(handle);
  ((SWIFT void (*)(HANDLE))dlsym(RTLD_NEXT, UNLOCK))(handle);
}
