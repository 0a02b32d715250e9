import PropertyLists
import Testing

/// What the guard and the reader say of some bytes; they must say the same.
///
/// - Returns: The code of the refusal; `nil` if the bytes are accepted.
func refusal(
  _ bytes: [UInt8], limits: PropertyListLimits = .standard,
  sourceLocation: SourceLocation = #_sourceLocation
) -> PropertyListError.Code? {
  let guarded = code { () throws(PropertyListError) in
    try PropertyListGuard.check(bytes, limits: limits)
  }
  let read = code { () throws(PropertyListError) in
    _ = try PropertyListValue(bytes: bytes, limits: limits)
  }
  #expect(guarded == read, "guard and reader disagree", sourceLocation: sourceLocation)
  return guarded
}

private func code(_ body: () throws(PropertyListError) -> Void) -> PropertyListError.Code? {
  do throws(PropertyListError) {
    try body()
    return nil
  } catch {
    return error.code
  }
}
