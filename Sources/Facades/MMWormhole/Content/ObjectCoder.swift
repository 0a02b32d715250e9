import Foundation

/// A coder that gets what a program's objects encode, and passes it on to an archiver, if any.
class ObjectCoder: NSCoder {
  final let archiver: NSKeyedArchiver?

  init(_ archiver: NSKeyedArchiver?) { self.archiver = archiver }

  /// Returns what is encoded instead of an object.
  func replacement(for object: Any) -> Any { object }

  override var allowsKeyedCoding: Bool { true }

  override func encode(_ object: Any?, forKey key: String) {
    let replacement = object.map(replacement(for:))
    archiver?.encode(replacement, forKey: key)
  }
  override func encodeConditionalObject(_ object: Any?, forKey key: String) {
    let replacement = object.map(replacement(for:))
    archiver?.encodeConditionalObject(replacement, forKey: key)
  }
  override func encode(_ object: Any?) {
    let replacement = object.map(replacement(for:))
    archiver?.encode(replacement)
  }
  override func encodeConditionalObject(_ object: Any?) {
    let replacement = object.map(replacement(for:))
    archiver?.encodeConditionalObject(replacement)
  }
  override func encodeRootObject(_ object: Any) { encode(object) }
  override func encodeBycopyObject(_ object: Any?) { encode(object) }
  override func encodeByrefObject(_ object: Any?) { encode(object) }
  override func encodePropertyList(_ list: Any) { encode(list) }

  override func encode(_ value: Bool, forKey key: String) { archiver?.encode(value, forKey: key) }
  override func encode(_ value: Int, forKey key: String) { archiver?.encode(value, forKey: key) }
  override func encode(_ value: Int32, forKey key: String) { archiver?.encode(value, forKey: key) }
  override func encode(_ value: Int64, forKey key: String) { archiver?.encode(value, forKey: key) }
  override func encode(_ value: Float, forKey key: String) { archiver?.encode(value, forKey: key) }
  override func encode(_ value: Double, forKey key: String) { archiver?.encode(value, forKey: key) }
  override func encode(_ data: Data) { archiver?.encode(data) }
  override func encodeBytes(_ bytes: UnsafePointer<UInt8>?, length: Int, forKey key: String) {
    archiver?.encodeBytes(bytes, length: length, forKey: key)
  }
  override func encodeBytes(_ bytes: UnsafeRawPointer?, length: Int) {
    archiver?.encodeBytes(bytes, length: length)
  }
  override func encodeValue(ofObjCType type: UnsafePointer<Int8>, at place: UnsafeRawPointer) {
    archiver?.encodeValue(ofObjCType: type, at: place)
  }
  override func encodeArray(
    ofObjCType type: UnsafePointer<Int8>, count: Int, at place: UnsafeRawPointer
  ) {
    archiver?.encodeArray(ofObjCType: type, count: count, at: place)
  }
}
