import WormholePropertyLists

/// The writer of a sender's batches, called by one thread at a time: it checks the limits, stamps, and
/// stores.
package protocol QueueOutlet: Sendable {
  var queue: Queue { get }
  /// The limit on waiting entries.
  var admission: Admission { get }

  /// Returns sends in groups that may be stored together.
  func parts(of submissions: [Submission]) -> [[Submission]]

  /// Returns whether so many entries, with so many bytes, may still be stored.
  func admits(_ count: Int, _ size: Int) throws -> Bool

  /// Stores a batch, under a new name.
  ///
  /// - Parameter role: The role that is required for storing it.
  func store(
    _ bytes: [UInt8], _ entries: [Batch.Entry], position: Submission.Place, isDurable: Bool,
    under role: RoleProof?
  ) throws -> EntryFile
}

extension QueueOutlet {
  func parts(of submissions: [Submission]) -> [[Submission]] { [submissions] }

  /// Stores entries, together if possible, and reports its outcome to each send.
  func write(_ submissions: [Submission]) {
    for part in parts(of: submissions) { writeTogether(part) }
  }

  private func writeTogether(_ submissions: [Submission]) {
    guard submissions.count > 1 else { return writeEach(submissions) }
    do {
      let bytes = try Batch(submissions.map(\.entry)).bytes()
      guard try admits(submissions.count, bytes.count) else { return writeEach(submissions) }
      try store(submissions, bytes)
    } catch is PropertyListError {
      // One of them cannot be stored, or not all together.
      writeEach(submissions)
    } catch {
      for submission in submissions { submission.settle(.failure(error)) }
    }
  }

  // As many as the limits allow: after one refusal the rest are refused without a scan for each.
  private func writeEach(_ submissions: [Submission]) {
    var refusal: AppGroupError?
    for submission in submissions {
      if let refusal {
        submission.settle(.failure(refusal))
      } else {
        refusal = writeOne(submission)
      }
    }
  }

  /// - Returns: the error if the queue is full.
  private func writeOne(_ submission: Submission) -> AppGroupError? {
    do {
      let bytes = try Batch([submission.entry]).bytes()
      guard try admits(1, bytes.count) else {
        let refusal = full(admission)
        submission.settle(.failure(refusal))
        return refusal
      }
      try store([submission], bytes)
    } catch let error as PropertyListError {
      let action = "send to \"\(queue.name)\""
      submission.settle(.failure(AppGroupError.unacceptable(error, action, path: queue.path)))
    } catch {
      submission.settle(.failure(error))
    }
    return nil
  }

  private func store(_ submissions: [Submission], _ bytes: [UInt8]) throws {
    let isDurable = submissions.contains { $0.durability == .durable }
    let entries = submissions.map(\.entry)
    let name = try reporting("send to \"\(queue.name)\"", path: queue.path) {
      try store(
        bytes, entries, position: submissions[0].place, isDurable: isDurable,
        under: submissions[0].role)
    }
    for (index, submission) in submissions.enumerated() {
      submission.settle(.success(QueueEntryID(batch: name, index: index)))
    }
  }

  private func full(_ limits: Admission) -> AppGroupError {
    AppGroupError(
      .queueFull, "send to \"\(queue.name)\"", path: queue.path,
      reason: "the limit of \(limits.maximumEntries) entries or \(limits.maximumBytes) bytes is "
        + "reached",
      remedy: "wait until its consumer has caught up")
  }
}
