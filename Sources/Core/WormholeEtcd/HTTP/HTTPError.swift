/// Why a request has no answer.
package struct HTTPError: Error, Hashable, CustomStringConvertible {
  /// The kinds differ in what a caller may conclude.
  package enum Code: Sendable {
    /// libcurl is not installed or too old.
    case libraryMissing
    /// No connection: no server listens there, or there is no route. Nothing was sent.
    case refused
    /// The host has no address. Nothing was sent.
    case nameNotFound
    /// A certificate, a key or their absence: repeating it does not help.
    case certificate
    /// The deadline passed before anything of the content was sent.
    case timedOut
    /// The request was sent, at least in part, and no whole answer came: the server may have acted
    /// on it. libcurl never sends it a second time by itself.
    case inDoubt
    /// The answer is longer than the caller accepts; what was requested may have happened.
    case tooLarge
    /// The server ended a stream correctly: its answer is complete.
    case ended
    /// The caller cancelled the stream.
    case cancelled
  }

  package let code: Code
  /// A description, without the server's name.
  package let reason: String

  package init(_ code: Code, _ reason: String) {
    self.code = code
    self.reason = reason
  }

  package var description: String { reason }
}

extension HTTPError {
  /// The meaning of libcurl's code (libcurl-errors(3)).
  ///
  /// - Parameters:
  ///   - text: libcurl's text about this transfer.
  ///   - wasTaken: Whether libcurl took content from us, or was about to send it. Before that, a server has
  ///     at most the header of a request whose content is missing.
  ///   - number: The kernel's error number, if a connection failed.
  static func transfer(
    _ code: Int32, _ text: String, contentWasTaken wasTaken: Bool, errorNumber number: Int
  ) -> HTTPError {
    switch code {
    case 6 where !wasTaken: return HTTPError(.nameNotFound, "the name of the host was not found")
    case 7 where !wasTaken && number == 111:
      return HTTPError(.refused, "it refused the connection")
    // Faults of the client's files, or of the server's certificate. After these no request was sent
    // on this connection.
    case 35, 53, 54, 58, 59, 60, 66, 77, 80, 82, 83, 90, 91, 98:
      return HTTPError(wasTaken ? .inDoubt : .certificate, text)
    // With TLS 1.3 a server rejects the certificate only after the request.
    case 55 where isAboutCertificates(text), 56 where isAboutCertificates(text):
      return HTTPError(.certificate, text)
    case 28 where !wasTaken: return HTTPError(.timedOut, "it did not answer in time")
    case 28: return HTTPError(.inDoubt, "it got the request and did not answer in time")
    // Refused by our function: it would be sent again, or the content would have to start again.
    case 42, 65: return HTTPError(.inDoubt, "the connection ended before the answer")
    case _ where !wasTaken: return HTTPError(.refused, text)
    default: return HTTPError(.inDoubt, text)
    }
  }

  private static func isAboutCertificates(_ text: String) -> Bool {
    text.contains(" alert ")
      && ["certificate", "unknown ca", "access denied", "handshake"].contains { text.contains($0) }
  }
}
