/// Returns a text of so many "x".
///
/// `String(repeating:count:)` appends them one by one; without optimization the longest text of the tests
/// takes a second.
package func longText(_ count: Int) -> String {
  String(unsafeUninitializedCapacity: count) { bytes in
    bytes.initialize(repeating: UInt8(ascii: "x"))
    return count
  }
}
