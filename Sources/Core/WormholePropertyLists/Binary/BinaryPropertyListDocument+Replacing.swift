/// Changing one value of a large dictionary: the bytes of all others are copied.
extension BinaryPropertyListDocument {
  /// Returns the file with another value for a key of the dictionary at its top. For a file of
  /// `BinaryPropertyListWriter` it is the file that the writer would write.
  ///
  /// - Parameter limits: The limits within which the file was read, and within which the new one is.
  /// - Returns: nil if the value has to be written with all others: it is or was a container, the
  ///   dictionary lacks the key, another reference shares the old object or may share the new one,
  ///   or another writer left the objects in another order than their numbers, or others between them.
  /// - Throws: `PropertyListError` for a value that no property list holds, or beyond the limits.
  func replacing(
    _ key: String, with value: PropertyListValue, limits: PropertyListLimits
  ) throws(PropertyListError) -> [UInt8]? {
    switch value {
    case .array, .dictionary: return nil
    default: break
    }
    let alone = try BinaryPropertyListDocument(BinaryPropertyListWriter.bytes(of: value))
    let object = alone.bytes[BinaryPropertyListTrailer.headerSize..<alone.trailer.tableOffset]
    guard trailer.topObject == 0, let old = try number(ofValueFor: key) else { return nil }
    // One more, so that each object has an end.
    var offsets = (0..<trailer.objectCount).map(offset(of:)) + [trailer.tableOffset]
    guard let isSmall = isReplaceable(old, by: object, offsets, limits) else { return nil }
    let range = offsets[old]..<offsets[old + 1]
    offsets.removeLast()
    for number in offsets.indices[(old + 1)...] { offsets[number] += object.count - range.count }
    var output = ByteBuffer(capacity: bytes.count + object.count)
    output.append(bytes[..<range.lowerBound])
    output.append(object)
    output.append(bytes[range.upperBound..<trailer.tableOffset])
    output.appendTable(of: offsets, referenceSize: trailer.referenceSize)
    let new = output.bytes
    if !isSmall || new.count > limits.maximumBytes {
      try BinaryPropertyListScan.check(new, limits: limits)
    }
    return new
  }

  /// Returns the number of the object that a key of the top dictionary refers to.
  ///
  /// - Returns: nil if the key is missing, or if the keys are not sorted as the writer sorts them.
  private func number(ofValueFor key: String) throws(PropertyListError) -> Int? {
    guard case .dictionary(let references, let count) = try object(at: offset(of: 0)) else {
      return nil
    }
    var candidates = 0..<count
    while !candidates.isEmpty {
      let middle = candidates.lowerBound + candidates.count / 2
      let found = try string(at: offset(of: reference(middle, of: references)))
      if found.hasSameBytes(as: key) { return try reference(count + middle, of: references) }
      if found.precedesInUTF8(key) {
        candidates = (middle + 1)..<candidates.upperBound
      } else {
        candidates = candidates.lowerBound..<middle
      }
    }
    return nil
  }

  /// Returns whether the values are, with an object in place of another, certainly within limits.
  ///
  /// - Returns: nil if the object cannot be replaced alone. One reference must have it, it must be no
  ///   container, and the writer would write a new string that equals another only once.
  private func isReplaceable(
    _ old: Int, by new: ArraySlice<UInt8>, _ offsets: [Int], _ limits: PropertyListLimits
  ) -> Bool? {
    let width = trailer.referenceSize
    var (uses, containers, references, longest) = (0, 0, 0, new.count)
    for number in 0..<trailer.objectCount {
      let (start, end) = (offsets[number], offsets[number + 1])
      guard start < end else { return nil }
      let marker = bytes[start] & 0xF0
      if marker == 0xA0 || marker == 0xD0 {
        guard number != old else { return nil }
        // What no reference reaches may be malformed, and may claim what lies behind it again and again.
        guard let (place, count) = try? self.references(at: start), place + count * width <= end
        else { return nil }
        for index in 0..<count
        where bytes.bigEndian(at: place + index * width, width: width) == UInt64(old) { uses += 1 }
        containers += 1
        references += count
      } else {
        longest = max(longest, end - start)
        if end - start == new.count, marker == 0x50 || marker == 0x60, number != old,
          bytes[start..<end] == new
        {
          return nil
        }
      }
    }
    guard uses == 1 else { return nil }
    // A byte of a string costs a reader at most three. Nested containers may share others.
    return containers == 1
      && references * (PropertyListLimits.bytesPerNode + 3 * longest) < limits.maximumExpandedBytes
  }

  /// Returns the place and the number of the references of a container.
  private func references(at offset: Int) throws(PropertyListError) -> (place: Int, count: Int) {
    switch try object(at: offset) {
    case .array(let place, let count): (place, count)
    case .dictionary(let place, let count): (place, 2 * count)
    default: (offset, 0)
    }
  }
}
