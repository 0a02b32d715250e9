import Glibc
import WormholeShims

/// The error number of a failed system call. The corresponding C name is `errno`.
@usableFromInline
package struct Errno: Error, RawRepresentable, Hashable, Sendable {
  @usableFromInline
  package let rawValue: Int32

  @inlinable
  package init(rawValue: Int32) {
    self.rawValue = rawValue
  }

  package static let accessDenied = Errno(rawValue: EACCES)
  package static let alreadyExists = Errno(rawValue: EEXIST)
  package static let badFileDescriptor = Errno(rawValue: EBADF)
  package static let crossesDevices = Errno(rawValue: EXDEV)
  package static let diskQuotaExceeded = Errno(rawValue: EDQUOT)
  package static let fileNameTooLong = Errno(rawValue: ENAMETOOLONG)
  package static let fileTooLarge = Errno(rawValue: EFBIG)
  package static let illegalByteSequence = Errno(rawValue: EILSEQ)
  package static let inputOutput = Errno(rawValue: EIO)
  package static let interrupted = Errno(rawValue: EINTR)
  package static let invalidArgument = Errno(rawValue: EINVAL)
  package static let isDirectory = Errno(rawValue: EISDIR)
  @usableFromInline
  package static let noSuchFile = Errno(rawValue: ENOENT)
  package static let notAProgram = Errno(rawValue: ENOEXEC)
  package static let noSuchProcess = Errno(rawValue: ESRCH)
  package static let noChild = Errno(rawValue: ECHILD)
  package static let noLocks = Errno(rawValue: ENOLCK)
  package static let noSpace = Errno(rawValue: ENOSPC)
  package static let noSuchAttribute = Errno(rawValue: ENODATA)
  package static let notDirectory = Errno(rawValue: ENOTDIR)
  package static let directoryNotEmpty = Errno(rawValue: ENOTEMPTY)
  package static let deviceBusy = Errno(rawValue: EBUSY)
  package static let notPermitted = Errno(rawValue: EPERM)
  package static let noFunction = Errno(rawValue: ENOSYS)
  package static let brokenPipe = Errno(rawValue: EPIPE)
  package static let noSuchDevice = Errno(rawValue: ENXIO)
  package static let readOnlyFileSystem = Errno(rawValue: EROFS)
  package static let rangeTooSmall = Errno(rawValue: ERANGE)
  package static let staleHandle = Errno(rawValue: ESTALE)
  package static let timedOut = Errno(rawValue: ETIMEDOUT)
  package static let tooManyOpenFiles = Errno(rawValue: EMFILE)
  package static let tooManyOpenFilesInSystem = Errno(rawValue: ENFILE)
  package static let tooManyLinks = Errno(rawValue: ELOOP)
  package static let tooManyNames = Errno(rawValue: EMLINK)
  package static let unsuitableRequest = Errno(rawValue: ENOTTY)
  package static let unsupported = Errno(rawValue: EOPNOTSUPP)
  package static let wouldBlock = Errno(rawValue: EAGAIN)

  /// Whether there is no room: no space or inodes on the file system, or none for this user.
  package var isLackOfRoom: Bool { self == .noSpace || self == .diskQuotaExceeded }
  /// Whether a file could not be opened because too many are open.
  package var isLackOfDescriptors: Bool {
    self == .tooManyOpenFiles || self == .tooManyOpenFilesInSystem
  }
}

extension Errno {
  /// Whether the error of a call on an entry says nothing about other entries: it may not be read, is of
  /// another kind, or its block on the disk is bad.
  package var isOfOneEntry: Bool {
    let errors: [Errno] = [
      .accessDenied, .notPermitted, .notDirectory, .isDirectory, .tooManyLinks, .noSuchDevice,
      .inputOutput, .fileTooLarge,
    ]
    return errors.contains(self)
  }
}

extension Errno: CustomStringConvertible {
  /// The text that `strerror` has for the number.
  @usableFromInline
  package var description: String {
    withUnsafeTemporaryAllocation(of: CChar.self, capacity: 256) { buffer in
      guard let base = buffer.baseAddress else { return "error \(rawValue)" }
      csys_error_text(rawValue, base, buffer.count)
      return String(cString: base)
    }
  }
}
