// For ThreadSanitizer, which sees our own code and not the standard library's: that was not built with it.
// These take the places of a few of its functions, and report what they order.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>

extern void __tsan_acquire(void *);
extern void __tsan_release(void *);

#define SWIFT __attribute__((swiftcall))
#define HANDLE __attribute__((swift_context)) void *handle
#define REAL(type, name) ((type)dlsym(RTLD_NEXT, name))

// Synchronization.Mutex is taken and freed by atomic operations in our own code, unless a thread has to wait.
#define LOCK "$s15Synchronization12_MutexHandleV9_lockSlowyys6UInt32VF"
#define UNLOCK "$s15Synchronization12_MutexHandleV11_unlockSlowyyF"

SWIFT void lock_slowly(uint32_t thread, HANDLE) __asm__(LOCK);
SWIFT void unlock_slowly(HANDLE) __asm__(UNLOCK);

SWIFT void lock_slowly(uint32_t thread, HANDLE) {
  REAL(SWIFT void (*)(uint32_t, HANDLE), LOCK)(thread, handle);
  __tsan_acquire(handle);
}

SWIFT void unlock_slowly(HANDLE) {
  __tsan_release(handle);
  REAL(SWIFT void (*)(HANDLE), UNLOCK)(handle);
}

// A thread that releases an array's or a dictionary's storage has read it before the owner of the last
// reference changes it in place.
static void ordered(void *reference) {
  uintptr_t bits = (uintptr_t)reference;
  // A bridge object with this bit is text in itself or a constant; the other flags are beside the address.
  if (bits >> 63 || !bits) return;
  __tsan_release((void *)(bits & 0x00fffffffffffff8));
}

#define RELEASE(name)                                          \
  void name(void *reference) {                                 \
    static void (*real)(void *);                               \
    if (!real) real = REAL(void (*)(void *), #name);           \
    ordered(reference);                                        \
    real(reference);                                           \
  }

#define RELEASE_SEVERAL(name)                                    \
  void name(void *reference, uint32_t count) {                   \
    static void (*real)(void *, uint32_t);                       \
    if (!real) real = REAL(void (*)(void *, uint32_t), #name);   \
    ordered(reference);                                        \
    real(reference, count);                                      \
  }

RELEASE(swift_release)
RELEASE(swift_bridgeObjectRelease)
RELEASE_SEVERAL(swift_release_n)
RELEASE_SEVERAL(swift_bridgeObjectRelease_n)

bool swift_isUniquelyReferenced_nonNull_native(void *object) {
  static bool (*real)(void *);
  if (!real) real = REAL(bool (*)(void *), "swift_isUniquelyReferenced_nonNull_native");
  bool is_unique = real(object);
  if (is_unique) __tsan_acquire(object);
  return is_unique;
}
