extension CommandDescription {
  static let cluster = CommandDescription(
    name: "etcd",
    abstract: "Set up an etcd cluster, for containers that several machines share.",
    subcommands: [.clusterInit])

  static let clusterInit = CommandDescription(
    name: "init",
    abstract: "Write what each machine of a new cluster needs: configuration, unit, certificates.",
    discussion: """
      The directory gets one directory for each machine, with a script 'install' that installs etcd \
      (Debian's package), stops Debian's own service on the same port, and starts the member as the \
      service wormhole-etcd. Its data is in /var/lib/wormhole-etcd. The history is compacted after five \
      minutes.

      With --tls, the members and programs have certificates of an authority that is made, too (openssl \
      has to be installed), and each container has a user with a password, who may use the keys of that \
      container only. The script 'users' creates them in the running cluster (Debian: etcd-client). The \
      directory of a user in 'clients' is all that a program of that container needs; the directory \
      'authority' signs further certificates, and belongs in a safe place. All certificates end after ten \
      years; 'doctor' reports the end a month before.

      What is to be done next is printed. Without --tls, everybody who reaches the machines may read and \
      change everything.
      """,
    arguments: [
      .list(
        "host", .identifier,
        help: "The name or the address of a machine: three, five or seven, or one for a trial."),
      .flag("tls", help: "Encrypt everything, and ask for certificates and passwords."),
      .value(
        "prefix", .identifier, named: "name", standard: "wormhole",
        help: "The prefix of a container's keys; may be repeated.", isRepeating: true),
      .value(
        "directory", .directory, standard: "wormhole-etcd",
        help: "The directory to make, with everything in it."),
    ],
    needsContainer: false
  ) { arguments, environment in
    let plan = ClusterPlan(
      hosts: arguments.texts("host"), containers: arguments.texts("prefix"),
      isEncrypted: arguments.has("tls"))
    let path = try CommandLinePath.absolute(arguments.requiredText("directory"), to: "make")
    let directory = ClusterDirectory(plan: plan, path: path)
    defer { environment.showProgress(nil) }
    try directory.make { environment.showProgress("making files for \($0) …") }
    environment.showProgress(nil)
    for line in directory.nextSteps { try environment.print(line: line) }
  }
  .refusing { arguments in
    let (hosts, names) = (arguments.texts("host"), arguments.texts("prefix"))
    if let problem = hosts.compactMap(ClusterPlan.problem(withHost:)).first { return problem }
    if let problem = names.compactMap(ClusterPlan.problem(withContainer:)).first { return problem }
    if Set(hosts).count < hosts.count { return "a machine is named twice" }
    if Set(names).count < names.count { return "a prefix is named twice" }
    guard hosts.count % 2 == 1, hosts.count <= 7 else {
      return
        "\(hosts.count) machines tolerate no more failures than \(hosts.count - 1); name 1, 3, 5 or 7"
    }
    return nil
  }
}

extension ClusterDirectory {
  fileprivate var nextSteps: [String] {
    var lines = plan.hosts.map {
      "on \($0), as root, with a copy of \(path)/\($0):  ./\($0)/install"
    }
    if plan.isEncrypted { lines.append("then here, once:  \(path)/users") }
    for name in plan.containers {
      let location = plan.location(of: name, files: files(of: name))
      lines.append("then programs use:  export WORMHOLE_CONTAINER='\(location)'")
    }
    return lines
  }
}
