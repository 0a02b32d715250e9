import WormholeShims

/// The system's libcurl, loaded when this process first needs it.
///
/// It is never linked: a program that makes no transfer does not load it, and its absence is an
/// error of the call, not of the program's start.
// The addresses of functions never change after `load`, and libcurl's functions are thread-safe as
// long as each handle is used by one thread at a time, which `EasyHandle` and `HTTPStreams` ensure.
final class CurlLibrary: @unchecked Sendable {
  private static let loaded = Result { () throws(HTTPError) in try CurlLibrary("libcurl.so.4") }

  let functions: UnsafePointer<ccurl_library>

  /// The library, or the error of its first use, which lasts until the process ends.
  static func get() throws(HTTPError) -> CurlLibrary { try loaded.get() }

  /// - Throws: `.libraryMissing` if it is not installed, lacks a function, or is too old.
  init(_ name: String) throws(HTTPError) {
    let functions = UnsafeMutablePointer<ccurl_library>.allocate(capacity: 1)
    var reason: UnsafePointer<CChar>?
    let result = ccurl_load(name, functions, &reason)
    let text = reason.map { String(cString: $0) } ?? ""
    guard result == 0 else {
      functions.deallocate()
      throw HTTPError(
        .libraryMissing,
        result == 1
          ? "\(text); install libcurl (Debian: apt-get install libcurl4)"
          : "\(name) lacks \(text); \(Self.remedy)")
    }
    if let tooOld = Self.refusal(ofVersion: ccurl_version(functions)) {
      functions.deallocate()
      throw tooOld
    }
    // 3: everything (CURL_GLOBAL_DEFAULT). Fails only without memory or with a broken TLS library.
    guard functions.pointee.global_init(3) == 0 else {
      functions.deallocate()
      throw HTTPError(.libraryMissing, "\(name) cannot initialize its TLS library")
    }
    self.functions = UnsafePointer(functions)
  }

  private static let remedy = "install libcurl 7.68 or newer (Debian: apt-get install libcurl4)"

  /// - Parameter version: As 0xXXYYZZ.
  /// - Returns: The error for a version that lacks a function, or nil.
  static func refusal(ofVersion version: UInt32) -> HTTPError? {
    guard version < UInt32(ccurl_OLDEST_VERSION) else { return nil }
    let text = "\(version >> 16).\(version >> 8 & 255).\(version & 255)"
    return HTTPError(.libraryMissing, "libcurl \(text) is too old; \(remedy)")
  }

  func text(ofCode code: Int32) -> String { String(cString: functions.pointee.easy_strerror(code)) }
}
