import FoundationEssentials

extension PropertyListValue {
  /// Creates a value from the objects that Apple's interfaces take as `Any`.
  ///
  /// The accepted types are `String`, every integer type, `Double` and the types that it holds
  /// exactly (`Float`, `CGFloat`), `Decimal` as the nearest number, `Bool`, `Date`, `Data`, arrays,
  /// dictionaries with string keys, `PropertyListValue` itself, optionals that hold one of these, and
  /// Foundation's `NS…` classes, which arrive here through Swift's dynamic casts.
  ///
  /// - Throws: `unsupportedType` or `unrepresentable` with the key path of the offending object;
  ///   `tooDeep` beyond `PropertyListLimits.deepestNesting` levels.
  public init(propertyList object: Any) throws(PropertyListError) {
    self = try Self.value(of: object, depth: 0)
  }

  /// The value as the objects that Apple's interfaces return as `Any`.
  ///
  /// The objects are `String`, `Date`, `Data`, `[Any]`, `[String: Any]`, booleans and numbers. In a
  /// process that has Foundation the latter are `NSNumber`s, as on Apple's platforms: `as?` casts
  /// them to every type that holds them exactly (an integer to `Int`, `UInt8` or `Double`, a real
  /// to `Double` or `Float`, a boolean to `Bool`, or to a number, 1 or 0), even within an array or
  /// a dictionary. In a process that has only FoundationEssentials they are a `Bool`, an `Int`, a
  /// `UInt64` above `Int.max`, or a `Double`, and cast to that type only.
  ///
  /// - Complexity: No system call; about a microsecond per number or boolean.
  public var propertyListObject: Any {
    switch self {
    case .string(let string): string
    case .integer(let integer): Self.object(of: Int(integer))
    case .unsigned(let integer): Int(exactly: integer).map(Self.object) ?? Self.object(of: integer)
    case .real(let real): Self.object(of: real)
    case .boolean(let boolean): Self.object(of: boolean)
    case .date(let date): date
    case .data(let data): data
    case .array(let array): array.map(\.propertyListObject)
    case .dictionary(let dictionary): dictionary.mapValues(\.propertyListObject)
    }
  }

  /// Returns a number or a boolean as Foundation bridges it, or itself in a process without
  /// Foundation.
  // Foundation makes Swift's types conform, so the cast shows whether the process has loaded it.
  // Importing it here would load it into every program, and loading costs a short command more than
  // all of its work.
  private static func object(of number: some Sendable) -> Any {
    (number as? any _ObjectiveCBridgeable)?._bridgeToObjectiveC() ?? number
  }

  /// Recurses at most `deepestNesting` levels.
  private static func value(
    of object: Any, depth: Int
  ) throws(PropertyListError) -> PropertyListValue {
    if let optional = object as? any OptionalObject {
      guard let wrapped = optional.wrapped else {
        throw PropertyListError(.unsupportedType, "it is nil, which property lists cannot hold")
      }
      return try value(of: wrapped, depth: depth)
    }
    if let value = leaf(object) { return value }
    if let array = object as? [Any] {
      guard depth < PropertyListLimits.deepestNesting else { throw .tooDeep() }
      var values: [PropertyListValue] = []
      values.reserveCapacity(array.count)
      for (index, element) in array.enumerated() {
        values.append(try value(of: element, at: "[\(index)]", depth: depth))
      }
      return .array(values)
    }
    if let dictionary = object as? [String: Any] {
      guard depth < PropertyListLimits.deepestNesting else { throw .tooDeep() }
      var values = [String: PropertyListValue](minimumCapacity: dictionary.count)
      for (key, element) in dictionary {
        values[key] = try value(of: element, at: key, depth: depth)
      }
      return .dictionary(values)
    }
    if object is any BinaryInteger {
      throw PropertyListError(.unrepresentable, "the integer \(object) does not fit 64 bits")
    }
    throw PropertyListError(
      .unsupportedType,
      "it is of type \(type(of: object)), and a property list holds strings, numbers, booleans, "
        + "dates, data, arrays, and dictionaries with string keys")
  }

  /// Returns the value of a container's element; its refusal names its place there, too.
  private static func value(
    of element: Any, at key: @autoclosure () -> String, depth: Int
  ) throws(PropertyListError) -> PropertyListValue {
    do throws(PropertyListError) {
      return try value(of: element, depth: depth + 1)
    } catch {
      throw error.below(key())
    }
  }

  /// Returns a real for a type with no more digits than a double, such as `CGFloat`, whose module
  /// lies above this one.
  private static func real<Number: BinaryFloatingPoint>(of number: Number) -> PropertyListValue? {
    let isExact = Number.significandBitCount <= Double.significandBitCount
    return isExact ? .real(Double(number)) : nil
  }

  /// Returns an integer if the text is one, otherwise the nearest real.
  private static func number(of text: String) -> PropertyListValue? {
    Int64(text).map(Self.integer) ?? Double(text).map(Self.real)
  }

  /// Returns a value that is not an array or a dictionary; nil for any other object.
  package static func leaf(_ object: Any) -> PropertyListValue? {
    // A cast to Bool also succeeds for NSNumber(value: 1), and a cast to Int for NSNumber(value:
    // true). So Swift's own types are tested first, then Foundation's classes.
    if type(of: object) is AnyClass { return leafOfClass(object) }
    return switch object {
    case let value as PropertyListValue: value
    case let string as String: .string(string)
    case let boolean as Bool: .boolean(boolean)
    case let integer as Int: .integer(Int64(integer))
    case let real as Double: .real(real)
    case let data as Data: .data(data)
    case let date as Date: .date(date)
    case let real as Float: .real(Double(real))
    case let string as Substring: .string(String(string))
    case let integer as any BinaryInteger: PropertyListValue(exactly: integer)
    case let decimal as Decimal: number(of: "\(decimal)")
    case let real as any BinaryFloatingPoint: Self.real(of: real)
    default: nil
    }
  }

  /// Returns the content of an `NSString`, `NSNumber`, `NSDate` or `NSData`, without importing
  /// Foundation.
  private static func leafOfClass(_ object: Any) -> PropertyListValue? {
    if String(describing: type(of: object)) == "__NSCFBoolean" {
      return (object as? Bool).map(Self.boolean)
    }
    // NSNumber(value: 1.0) also casts to Int64, but describes itself as "1.0".
    if let integer = object as? Int64, String(describing: object) == String(integer) {
      return .integer(integer)
    }
    if let integer = object as? UInt64, String(describing: object) == String(integer) {
      return PropertyListValue(integer)
    }
    return switch object {
    case let string as String: .string(string)
    case let real as Double: .real(real)
    case let date as Date: .date(date)
    case let data as Data: .data(data)
    default: nil
    }
  }
}

/// An optional whose wrapped type is not known at compile time.
package protocol OptionalObject {
  var wrapped: Any? { get }
}

extension Optional: OptionalObject {
  package var wrapped: Any? { map { $0 } }
}

extension PropertyListError {
  /// Returns the same refusal as seen from the container that holds the value at a key or an index.
  func below(_ key: String) -> PropertyListError {
    guard case .keyPath(let path) = position else { return self }
    let separator = path.isEmpty || path.hasPrefix("[") ? "" : "."
    // The path of a value 500 levels down is useless, and building it takes quadratic time.
    guard path.utf8.count < 1_000 else { return self }
    return PropertyListError(code, at: .keyPath(key + separator + path), reason)
  }
}
