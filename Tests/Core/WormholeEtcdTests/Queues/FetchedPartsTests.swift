import Synchronization
import Testing
import WormholeSystem
import WormholeTestSupport

@testable import Wormhole
@testable import WormholeEtcd

/// What becomes of a file that comes through etcd, on this machine.
@Suite("Parts of a file that were fetched", .blocking)
struct FetchedPartsTests {
  private let directory: TemporaryDirectory
  private let place: QueueDirectory
  private let parts = FetchedParts()

  init() throws {
    directory = try TemporaryDirectory()
    place = try directory.container().queue("q").openOrMake()
    try place.prepare("etcd-own")
  }

  private func receive(
    _ id: String, _ download: (borrowing FileDescriptor, SharedDescriptor?) throws -> Bool
  ) throws {
    try place.receive(id, by: "etcd-own", isClaimed: false, parts: parts, download)
  }

  private func outage() throws {
    let error = #expect(throws: EtcdError.self) {
      try receive("x") { file, part in
        #expect(part == nil)
        try file.writeAll([1, 2, 3])
        throw EtcdError(.unreachable, "")
      }
    }
    #expect(error?.code == .unreachable && !directory.listing.contains("incoming"))
  }

  @Test("are there for the next attempt")
  func kept() throws {
    try outage()
    try receive("x") { file, part in
      let found = try part?.descriptor.readToEnd(expectedBytes: 3, maximumBytes: 9)
      #expect(found == [1, 2, 3])
      try file.writeAll([4])
      return true
    }
    #expect(parts.take("x") == nil)
    #expect(directory.listing.contains("etcd-own/attachment-x/content"))
  }

  @Test("are given up if the disk is full")
  func fullDisk() throws {
    try outage()
    let error = #expect(throws: Errno.self) {
      try receive("x") { file, _ in
        try file.writeAll([1])
        throw Errno.noSpace
      }
    }
    #expect(error == .noSpace && parts.take("x") == nil)
  }

  @Test("are none if somebody else has put something in their place")
  func foreign() throws {
    let path = AttachmentPlace.takenPath("y", by: "etcd-own")
    try place.makeDirectory(path)
    try place.makeDirectory(path + "/incoming")
    try place.keep(in: "etcd-own", parts)
    #expect(parts.take("y") == nil)
  }

  #if DEBUG
    @Test("that cannot be kept leave nothing that looks like a file that was claimed")
    func withoutDescriptors() throws {
      let isFailing = Atomic(false)
      let plan = Faults.Plan { call, _ in
        guard call == .openat2, isFailing.exchange(false, ordering: .relaxed) else {
          return .proceed
        }
        return .fail(.tooManyOpenFiles)
      }
      Faults.$plan.withValue(plan) {
        _ = #expect(throws: EtcdError.self) {
          try receive("x") { _, _ in
            isFailing.store(true, ordering: .relaxed)
            throw EtcdError(.unreachable, "")
          }
        }
      }
      #expect(!isFailing.load(ordering: .relaxed) && parts.take("x") == nil)
      #expect(!directory.listing.contains("attachment-x"), "\(directory.listing)")
    }
  #endif
}
