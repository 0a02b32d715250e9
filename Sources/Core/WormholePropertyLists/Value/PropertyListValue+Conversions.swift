public import FoundationEssentials

extension PropertyListValue {
  /// A string.
  public init(_ string: String) { self = .string(string) }

  /// Creates an integer of any width: `.integer` if it fits `Int64`, otherwise `.unsigned`.
  ///
  /// - Returns: `nil` if the number fits neither `Int64` nor `UInt64`.
  public init?<Integer: BinaryInteger>(exactly integer: Integer) {
    if let signed = Int64(exactly: integer) {
      self = .integer(signed)
    } else if let unsigned = UInt64(exactly: integer) {
      self = .unsigned(unsigned)
    } else {
      return nil
    }
  }

  /// An integer.
  public init(_ integer: Int) { self = .integer(Int64(integer)) }

  /// An integer.
  public init(_ integer: Int64) { self = .integer(integer) }

  /// An integer: `.unsigned` only above `Int64.max`.
  public init(_ integer: UInt64) {
    self = Int64(exactly: integer).map(Self.integer) ?? .unsigned(integer)
  }

  /// An integer: `.unsigned` only above `Int64.max`.
  public init(_ integer: UInt) { self.init(UInt64(integer)) }

  /// A real.
  public init(_ real: Double) { self = .real(real) }

  /// A boolean.
  public init(_ boolean: Bool) { self = .boolean(boolean) }

  /// A date.
  public init(_ date: Date) { self = .date(date) }

  /// Bytes.
  public init(_ data: Data) { self = .data(data) }

  /// An array.
  public init(_ array: [PropertyListValue]) { self = .array(array) }

  /// A dictionary.
  public init(_ dictionary: [String: PropertyListValue]) { self = .dictionary(dictionary) }
}

extension PropertyListValue {
  /// The string, or `nil` for a value of another type.
  public var stringValue: String? {
    if case .string(let string) = self { string } else { nil }
  }

  /// The integer, or `nil` for another type or a number that `Int` cannot hold.
  public var intValue: Int? { int64Value.flatMap { Int(exactly: $0) } }

  /// The integer, or `nil` for another type or a number that `Int64` cannot hold.
  public var int64Value: Int64? {
    switch self {
    case .integer(let integer): integer
    case .unsigned(let integer): Int64(exactly: integer)
    default: nil
    }
  }

  /// The integer, or `nil` for another type or a negative number.
  public var uint64Value: UInt64? {
    switch self {
    case .integer(let integer): UInt64(exactly: integer)
    case .unsigned(let integer): integer
    default: nil
    }
  }

  /// The real, or the integer as the nearest real; `nil` for another type.
  public var doubleValue: Double? {
    switch self {
    case .real(let real): real
    case .integer(let integer): Double(integer)
    case .unsigned(let integer): Double(integer)
    default: nil
    }
  }

  /// The boolean, or `nil` for a value of another type; numbers are not booleans.
  public var boolValue: Bool? {
    if case .boolean(let boolean) = self { boolean } else { nil }
  }

  /// The date, or `nil` for a value of another type.
  public var dateValue: Date? {
    if case .date(let date) = self { date } else { nil }
  }

  /// The bytes, or `nil` for a value of another type.
  public var dataValue: Data? {
    if case .data(let data) = self { data } else { nil }
  }

  /// The array, or `nil` for a value of another type.
  public var arrayValue: [PropertyListValue]? {
    if case .array(let array) = self { array } else { nil }
  }

  /// The dictionary, or `nil` for a value of another type.
  public var dictionaryValue: [String: PropertyListValue]? {
    if case .dictionary(let dictionary) = self { dictionary } else { nil }
  }
}

extension PropertyListValue {
  /// The value of a key, or `nil` if there is none or this value is not a dictionary.
  ///
  /// Setting `nil` removes the key. Setting a key of a value that is not a dictionary replaces the
  /// value with a dictionary that has only this key.
  public subscript(key: String) -> PropertyListValue? {
    get { dictionaryValue?[key] }
    set {
      if case .dictionary(var dictionary) = self {
        // Release the storage, so that the change happens in place.
        self = .boolean(false)
        dictionary[key] = newValue
        self = .dictionary(dictionary)
      } else if let newValue {
        self = .dictionary([key: newValue])
      }
    }
  }

  /// The element at an index, or `nil` if the index is out of range or this value is not an array.
  ///
  /// Setting replaces the element, or appends it if the index is the count of the array. Setting
  /// `nil` removes the element. Setting any other index has no effect.
  public subscript(index: Int) -> PropertyListValue? {
    get {
      guard case .array(let array) = self, array.indices.contains(index) else { return nil }
      return array[index]
    }
    set {
      guard case .array(var array) = self else { return }
      // Release the storage, so that the change happens in place.
      self = .boolean(false)
      if array.indices.contains(index) {
        array.replaceSubrange(index...index, with: newValue.map { [$0] } ?? [])
      } else if index == array.endIndex, let newValue {
        array.append(newValue)
      }
      self = .array(array)
    }
  }
}
