// Types that a C function pointer can take, with members in Swift: see the module notify.
#pragma once

// A name that was interned: equal names are one pointer.
typedef const struct WormholeDarwinName *CFNotificationName
    __attribute__((swift_newtype(struct)));
// Only the Darwin center exists.
typedef const struct WormholeDarwinCenter *CFNotificationCenter
    __attribute__((swift_newtype(struct)));
// User information, which the Darwin center ignores.
typedef const struct WormholeDarwinUserInfo *CFDictionary
    __attribute__((swift_newtype(struct)));
