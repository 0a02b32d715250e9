import Testing
import WormholePropertyLists

/// Returns the verdict of the guard and the reader on some bytes, which must be the same.
func verdict(
  _ bytes: [UInt8], limits: PropertyListLimits = .standard,
  sourceLocation: SourceLocation = #_sourceLocation
) -> Result<PropertyListValue, PropertyListError> {
  let read = Result { () throws(PropertyListError) in
    try PropertyListValue(bytes: bytes, limits: limits)
  }
  let guarded = Result { () throws(PropertyListError) in
    try PropertyListGuard.check(bytes, limits: limits)
  }
  let isSame = code(of: read) == code(of: guarded)
  #expect(isSame, "guard and reader disagree about \(hex(bytes))", sourceLocation: sourceLocation)
  return read
}

/// Returns the code with which some bytes are refused, or `nil` if they are accepted.
func refusal(
  _ bytes: [UInt8], limits: PropertyListLimits = .standard,
  sourceLocation: SourceLocation = #_sourceLocation
) -> PropertyListError.Code? {
  code(of: verdict(bytes, limits: limits, sourceLocation: sourceLocation))
}

private func code<T>(of result: Result<T, PropertyListError>) -> PropertyListError.Code? {
  if case .failure(let error) = result { error.code } else { nil }
}
