import Glibc
import Testing
import WormholeShims
import WormholeTestSupport

@testable import WormholeEtcd

@Suite("libcurl", .blocking)
struct CurlLibraryTests {
  private func error(loading name: String) -> HTTPError? {
    do throws(HTTPError) {
      _ = try CurlLibrary(name)
      return nil
    } catch {
      return error
    }
  }

  @Test("that is missing, or another library, is an error that names the package")
  func missing() throws {
    let missing = try #require(error(loading: "libnothing.so.4"))
    #expect(missing.code == .libraryMissing)
    #expect(missing.reason.contains("libnothing.so.4"))
    #expect(missing.reason.contains("apt-get install libcurl4"))
    let other = try #require(error(loading: "libc.so.6"))
    #expect(other.code == .libraryMissing)
    #expect(other.reason.contains("lacks curl_global_init"))
    #expect(other.reason.contains("apt-get install libcurl4"))
  }

  @Test("that is too old is an error that says which is needed")
  func old() throws {
    let old = try #require(CurlLibrary.refusal(ofVersion: 0x074300))
    #expect(old.reason.contains("7.67.0 is too old"))
    #expect(old.reason.contains("7.68"))
    #expect(CurlLibrary.refusal(ofVersion: 0x074400) == nil)
    #expect(CurlLibrary.refusal(ofVersion: 0x080000) == nil)
  }

  @Test("has the options' numbers that are written here")
  func numbers() throws {
    // struct curl_easyoption { const char *name; CURLoption id; … } (curl_easy_option_by_name(3))
    typealias Find = @convention(c) (UnsafePointer<CChar>) -> UnsafeRawPointer?
    let library = try #require(dlopen("libcurl.so.4", RTLD_NOW))
    // Since libcurl 7.73.
    let find = unsafeBitCast(
      try #require(dlsym(library, "curl_easy_option_by_name")), to: Find.self)
    let options: [(String, ccurl_option)] = [
      ("POST", ccurl_POST), ("FOLLOWLOCATION", ccurl_FOLLOWLOCATION),
      ("SSLVERSION", ccurl_SSLVERSION), ("SSL_VERIFYPEER", ccurl_SSL_VERIFYPEER),
      ("SSL_VERIFYHOST", ccurl_SSL_VERIFYHOST), ("FORBID_REUSE", ccurl_FORBID_REUSE),
      ("HTTP_VERSION", ccurl_HTTP_VERSION), ("NOSIGNAL", ccurl_NOSIGNAL),
      ("TIMEOUT_MS", ccurl_TIMEOUT_MS), ("CONNECTTIMEOUT_MS", ccurl_CONNECTTIMEOUT_MS),
      ("CERTINFO", ccurl_CERTINFO), ("PROTOCOLS", ccurl_PROTOCOLS),
      ("TCP_KEEPALIVE", ccurl_TCP_KEEPALIVE),
      ("QUICK_EXIT", ccurl_QUICK_EXIT), ("WRITEDATA", ccurl_WRITEDATA), ("URL", ccurl_URL),
      ("PROXY", ccurl_PROXY), ("READDATA", ccurl_READDATA), ("ERRORBUFFER", ccurl_ERRORBUFFER),
      ("HTTPHEADER", ccurl_HTTPHEADER), ("SSLCERT", ccurl_SSLCERT),
      ("HEADERDATA", ccurl_HEADERDATA), ("CAINFO", ccurl_CAINFO), ("SSLKEY", ccurl_SSLKEY),
      ("COPYPOSTFIELDS", ccurl_COPYPOSTFIELDS), ("PREREQDATA", ccurl_PREREQDATA),
      ("PREREQFUNCTION", ccurl_PREREQFUNCTION),
      ("WRITEFUNCTION", ccurl_WRITEFUNCTION), ("READFUNCTION", ccurl_READFUNCTION),
      ("HEADERFUNCTION", ccurl_HEADERFUNCTION),
      ("POSTFIELDSIZE_LARGE", ccurl_POSTFIELDSIZE_LARGE),
    ]
    for (name, option) in options {
      // An older library does not know it, which is no error there.
      guard let found = find(name) else {
        #expect(["QUICK_EXIT", "PREREQDATA", "PREREQFUNCTION"].contains(name))
        continue
      }
      #expect(found.load(fromByteOffset: 8, as: UInt32.self) == option.rawValue, "\(name)")
    }
  }
}
