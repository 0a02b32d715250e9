import Foundation
import Testing
import WormholeSystem
import WormholeTestSupport
import WormholeWorkshop

@testable import WormholeEtcd

// The gate installs openssl.
@Suite(
  "What a certificate says", .blocking,
  .disabled(if: Certificates.areMissing, "openssl is not installed"))
struct CertificateTextTests {
  /// What openssl says about it, such as "notAfter=Nov 26 09:00:00 2026 GMT".
  private func openssl(_ file: String, _ words: [String]) throws -> String {
    let output = file + ".said"
    try runQuietly(
      "sh",
      ["-c", "openssl x509 -noout \(words.joined(separator: " ")) -in '\(file)' >'\(output)'"])
    return try textOfFile(output).trimmingCharacters(in: .whitespacesAndNewlines)
  }

  @Test("is what openssl reads in it", arguments: ["authority", "client", "nameless"])
  func agreement(_ name: String) throws {
    let files = try Certificates()
    let path = "\(files.directory.path)/\(name).pem"
    let found = try #require(CertificateText(pem: try textOfFile(path)))
    let end = try openssl(path, ["-enddate"])
    let form = DateFormatter()
    form.locale = Locale(identifier: "en_US_POSIX")
    form.dateFormat = "'notAfter='MMM d HH:mm:ss yyyy 'GMT'"
    form.timeZone = TimeZone(identifier: "UTC")
    let date = try #require(form.date(from: end.replacingOccurrences(of: "  ", with: " ")))
    #expect(found.end == date, "\(end)")
    let subject = try openssl(path, ["-subject", "-nameopt", "multiline"])
    #expect((found.commonName != nil) == subject.contains("commonName"), "\(subject)")
    #expect(found.commonName == (name == "nameless" ? nil : name))
  }

  @Test("is nothing for any other bytes, and no bytes crash it")
  func hostile() throws {
    let files = try Certificates()
    let pem = try textOfFile(files.directory.path + "/client.pem")
    #expect(
      CertificateText(pem: "") == nil && CertificateText(pem: "-----BEGIN CERTIFICATE-----") == nil)
    let lines = pem.split(separator: "\n")
    let content = Array(try #require(Data(base64Encoded: lines.dropFirst().dropLast().joined())))
    func read(_ bytes: [UInt8]) -> CertificateText? {
      CertificateText(
        pem:
          "-----BEGIN CERTIFICATE-----\n\(Data(bytes).base64EncodedString())\n-----END CERTIFICATE-----"
      )
    }
    #expect(read(content) != nil)
    // A time that has as many bytes as it should, but fewer characters.
    let end = try #require(
      content.indices.dropFirst(2).filter { content[$0 - 2] == 0x17 && content[$0 - 1] == 13 }.last)
    var wide = content
    wide.replaceSubrange(end..<end + 13, with: Array("ééé".utf8) + Array("123456Z".utf8))
    #expect(read(wide) == nil)
    wide.replaceSubrange(end..<end + 13, with: Array("26\r\n01120000Z".utf8))
    #expect(read(wide) == nil)
    for count in content.indices {
      #expect(read(Array(content[..<count])) == nil, "\(count) bytes")
      for value: UInt8 in [0, 0x7F, 0x84, 0xFF] {
        var changed = content
        changed[count] = value
        _ = read(changed)
      }
    }
  }
}
