/// Where the parts of a lease lie in its site, and what a holder leaves there.
package struct LeaseLayout: Sendable {
  /// The directory of the lease, seen from the site.
  let lease: String
  /// The same, to be followed by a name.
  let prefix: String
  /// The site, seen from `held`: ".." is the kernel's own idea of a parent, so no link can lead
  /// elsewhere.
  let fromHeld: String
  package let held: String
  let taken: String
  /// Whether the site is made for one change and removed after it, so that every file in it costs
  /// the making and the removal of an inode.
  ///
  /// Then no `clean` is made, and a holder looks for what breakers left each time (rule 5). And its
  /// first entry declares the holder, not a file made before: one that is overtaken before that is
  /// found out as one that was stopped between locking and declaring always is (rule 3;
  /// Tests/Models/lease.pml, PASSING).
  let isPassing: Bool

  /// Of a value, whose site stays.
  package static let lasting = LeaseLayout(
    lease: LeaseSite.lease, prefix: LeaseSite.lease + "/", fromHeld: LeaseSite.fromHeld,
    held: LeaseSite.held, taken: LeaseSite.taken, isPassing: false)

  /// Of a file that is being coordinated: the lease lies in the site itself.
  package static let passing = LeaseLayout(
    lease: ".", prefix: "", fromHeld: "../", held: "held", taken: "taken.plist", isPassing: true)
}
