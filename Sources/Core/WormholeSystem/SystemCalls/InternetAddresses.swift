import Glibc

/// Returns whether a text is an address of IPv6. The corresponding C function is `inet_pton`.
package func isIPv6Address(_ text: String) -> Bool {
  var address = in6_addr()
  return inet_pton(AF_INET6, text, &address) == 1
}
