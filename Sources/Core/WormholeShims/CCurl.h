// libcurl's functions and numbers, without a header of libcurl: the library is loaded when a program
// first needs it, and nothing is linked. Static inline functions, as in CSystemCalls.
//
// The numbers are part of libcurl's binary interface, libcurl.so.4, which only ever adds to them
// (https://curl.se/libcurl/abi.html). `curl_easy_option_by_name` confirms each of them in a test.
#ifndef C_CURL_H
#define C_CURL_H

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum ccurl_option {
  // Options with a number.
  ccurl_POST = 47,
  ccurl_FOLLOWLOCATION = 52,
  ccurl_SSLVERSION = 32,
  ccurl_SSL_VERIFYPEER = 64,
  ccurl_SSL_VERIFYHOST = 81,
  ccurl_FORBID_REUSE = 75,
  ccurl_HTTP_VERSION = 84,
  ccurl_NOSIGNAL = 99,
  ccurl_TIMEOUT_MS = 155,
  ccurl_CONNECTTIMEOUT_MS = 156,
  ccurl_CERTINFO = 172,
  ccurl_PROTOCOLS = 181,
  ccurl_TCP_KEEPALIVE = 213,
  ccurl_QUICK_EXIT = 322,
  // With an address.
  ccurl_WRITEDATA = 10001,
  ccurl_URL = 10002,
  ccurl_PROXY = 10004,
  ccurl_READDATA = 10009,
  ccurl_ERRORBUFFER = 10010,
  ccurl_HTTPHEADER = 10023,
  ccurl_SSLCERT = 10025,
  ccurl_HEADERDATA = 10029,
  ccurl_CAINFO = 10065,
  ccurl_COPYPOSTFIELDS = 10165,
  ccurl_PREREQDATA = 10313,
  ccurl_SSLKEY = 10087,
  // With a function.
  ccurl_WRITEFUNCTION = 20011,
  ccurl_READFUNCTION = 20012,
  ccurl_HEADERFUNCTION = 20079,
  ccurl_PREREQFUNCTION = 20312,  // Since 7.80.
  // With a number of 64 bits.
  ccurl_POSTFIELDSIZE_LARGE = 30120,
};

enum {
  ccurl_INFO_RESPONSE_CODE = 0x200002,
  ccurl_INFO_OS_ERRNO = 0x200019,
  ccurl_INFO_CERTINFO = 0x400022,

  // What a callback of READFUNCTION returns if there is nothing to send yet (CURL_READFUNC_PAUSE).
  ccurl_READ_PAUSE = 0x10000001,

  ccurl_ERROR_BYTES = 256,
  ccurl_OLDEST_VERSION = 0x074400,  // 7.68.0 has curl_multi_poll and curl_multi_wakeup.
};

// A callback of READFUNCTION, WRITEFUNCTION or HEADERFUNCTION.
typedef size_t (*ccurl_transfer)(
    char *_Nonnull bytes, size_t size, size_t count, void *_Nonnull context);

// A callback of PREREQFUNCTION: there is a connection, and the request is about to be sent. 0 lets it be.
typedef int (*ccurl_sending)(
    void *_Nonnull context, char *_Nullable peer, char *_Nullable own, int peer_port, int own_port);

// The functions of the loaded library.
struct ccurl_library {
  int (*_Nonnull global_init)(long flags);
  void *_Nonnull (*_Nonnull version_info)(int age);
  void *_Nullable (*_Nonnull easy_init)(void);
  void (*_Nonnull easy_cleanup)(void *_Nonnull easy);
  void (*_Nonnull easy_reset)(void *_Nonnull easy);
  int (*_Nonnull easy_perform)(void *_Nonnull easy);
  int (*_Nonnull easy_pause)(void *_Nonnull easy, int directions);
  // Variadic, which Swift cannot call: see the functions below.
  void *_Nonnull easy_setopt;
  void *_Nonnull easy_getinfo;
  void *_Nonnull multi_info_read;
  const char *_Nonnull (*_Nonnull easy_strerror)(int code);
  void *_Nullable (*_Nonnull slist_append)(void *_Nullable list, const char *_Nonnull text);
  void (*_Nonnull slist_free_all)(void *_Nullable list);
  void *_Nullable (*_Nonnull multi_init)(void);
  int (*_Nonnull multi_add_handle)(void *_Nonnull multi, void *_Nonnull easy);
  int (*_Nonnull multi_remove_handle)(void *_Nonnull multi, void *_Nonnull easy);
  int (*_Nonnull multi_perform)(void *_Nonnull multi, int *_Nonnull running);
  int (*_Nonnull multi_poll)(
      void *_Nonnull multi, void *_Nullable extra, unsigned int count, int milliseconds,
      int *_Nullable ready);
  int (*_Nonnull multi_wakeup)(void *_Nonnull multi);
};

// Loads the library (dlopen(3)); it stays loaded. Returns 0; 1 and the linker's reason if there is no
// such library; 2 and the name of a function that it lacks.
static inline int ccurl_load(
    const char *_Nonnull name, struct ccurl_library *_Nonnull library,
    const char *_Nullable *_Nonnull reason) {
  static const char *const names[] = {
      "curl_global_init", "curl_version_info", "curl_easy_init", "curl_easy_cleanup",
      "curl_easy_reset", "curl_easy_perform", "curl_easy_pause", "curl_easy_setopt",
      "curl_easy_getinfo", "curl_multi_info_read", "curl_easy_strerror", "curl_slist_append",
      "curl_slist_free_all", "curl_multi_init", "curl_multi_add_handle",
      "curl_multi_remove_handle", "curl_multi_perform", "curl_multi_poll", "curl_multi_wakeup"};
  enum { count = sizeof names / sizeof *names };
  _Static_assert(sizeof(struct ccurl_library) == count * sizeof(void *), "a name for each function");
  void *handle = dlopen(name, RTLD_NOW);
  if (handle == NULL) {
    *reason = dlerror();
    return 1;
  }
  void **functions = (void **)library;
  for (int index = 0; index < count; index++) {
    functions[index] = dlsym(handle, names[index]);
    if (functions[index] != NULL) continue;
    *reason = names[index];
    return 2;
  }
  return 0;
}

// The library's version, as 0xXXYYZZ.
static inline unsigned int ccurl_version(const struct ccurl_library *_Nonnull library) {
  struct {
    int age;
    const char *text;
    unsigned int number;
  } *information = library->version_info(0);
  return information->number;
}

static inline int ccurl_set_number(
    const struct ccurl_library *_Nonnull library, void *_Nonnull easy, enum ccurl_option option, long value) {
  return ((int (*)(void *, int, ...))library->easy_setopt)(easy, option, value);
}

static inline int ccurl_set_size(
    const struct ccurl_library *_Nonnull library, void *_Nonnull easy, enum ccurl_option option, int64_t value) {
  return ((int (*)(void *, int, ...))library->easy_setopt)(easy, option, value);
}

static inline int ccurl_set_address(
    const struct ccurl_library *_Nonnull library, void *_Nonnull easy, enum ccurl_option option,
    const void *_Nullable value) {
  return ((int (*)(void *, int, ...))library->easy_setopt)(easy, option, value);
}

static inline int ccurl_set_sending(
    const struct ccurl_library *_Nonnull library, void *_Nonnull easy, ccurl_sending _Nonnull value) {
  return ((int (*)(void *, int, ...))library->easy_setopt)(easy, ccurl_PREREQFUNCTION, value);
}

static inline int ccurl_set_transfer(
    const struct ccurl_library *_Nonnull library, void *_Nonnull easy, enum ccurl_option option,
    ccurl_transfer _Nonnull value) {
  return ((int (*)(void *, int, ...))library->easy_setopt)(easy, option, value);
}

static inline long ccurl_number(
    const struct ccurl_library *_Nonnull library, void *_Nonnull easy, int information) {
  long value = 0;
  ((int (*)(void *, int, ...))library->easy_getinfo)(easy, information, &value);
  return value;
}

// The certificate of the server in PEM, if a connection was made for the transfer and CERTINFO was set; it
// belongs to the handle. Null otherwise.
static inline const char *_Nullable ccurl_server_certificate(
    const struct ccurl_library *_Nonnull library, void *_Nonnull easy) {
  struct list {
    const char *text;
    struct list *next;
  };
  struct {
    int count;
    struct list **lists;
  } *found = NULL;
  ((int (*)(void *, int, ...))library->easy_getinfo)(easy, ccurl_INFO_CERTINFO, &found);
  if (found == NULL || found->count < 1) return NULL;
  for (struct list *item = found->lists[0]; item != NULL; item = item->next)
    if (strncmp(item->text, "Cert:", 5) == 0) return item->text + 5;
  return NULL;
}

// Takes the next transfer that has ended, and its code. Returns null if there is none.
static inline void *_Nullable ccurl_take_ended(
    const struct ccurl_library *_Nonnull library, void *_Nonnull multi, int *_Nonnull code) {
  struct message {
    int kind;
    void *easy;
    union {
      void *address;
      int code;
    } data;
  };
  enum { done = 1 };
  while (1) {
    int left = 0;
    struct message *message =
        ((struct message *(*)(void *, int *))library->multi_info_read)(multi, &left);
    if (message == NULL) return NULL;
    if (message->kind != done) continue;
    *code = message->data.code;
    return message->easy;
  }
}

#endif
