import WormholeSystem

extension CommandDescription {
  static let root = CommandDescription(
    name: ProgramName.called,
    abstract: "Coordinate processes that share a directory.",
    discussion: """
      Values are JSON, one compact line each. Data, dates and special numbers, which JSON lacks, are \
      written as {"$data": "<base64>"}, {"$date": "<ISO 8601>"} and {"$real": "nan"}, and read back in \
      this form. A dictionary whose only key really is one of these gets one more $: {"$$data": ...}. \
      The times that the command itself adds are texts: "2026-01-31T20:15:00Z" (RFC 3339).

      A name that begins with a dash goes after --, and a command then after another one: \
      queue take -- -jobs -- cat. As the value of an option it goes after =: lock --name=-x -- cat.

      For tools, 'help --json' lists the commands with their operands and options, and 'help queue --json' \
      those of one noun.

      A duration is a number of seconds, or has a unit: 250ms, 90s, 5m, 2h or 7d.

      Exit status:
      0 done
      1 not there, lost to another process, or a lock that others hold
      64 usage
      65 bad data
      69 out of reach: no process serves the peer, or etcd does not answer
      74 input/output
      75 in use: another process has the role, the queue or the container
      77 permission
      124 the deadline passed
      141 the reader of the output went away

      A command that runs another program names the container in that program's environment, and ends \
      with its status: 126 and 127 when it cannot be run, 128 plus the signal's number when it was \
      killed. A command whose file system does not \
      answer ends with 124 when its --timeout has passed; without a timeout it ends with 74 after 10 \
      seconds, unless it is already listening.
      """,
    summary: """
      Coordinate processes that share a directory.

      USAGE: \(ProgramName.called) [--group <id> | --container <directory>] <subcommand> ...

        send, read, listen, remove    Publish, print, follow and remove values.
        update, defaults              Change values; nobody else's change is lost.
        queue, log                    Work for one process each; events for all.
        lock, claim, presence         Run one at a time, and show who is running.
        notify, peer, watch           Notify processes, ask them, follow a file.
        ls, status, monitor, doctor   Show the content, the events and the faults.

      See also '\(ProgramName.called) help listen', 'help recipes' and 'help --all'.
      """,
    globalOptions: ContainerSelection.options,
    subcommands: [
      .send, .read, .listen, .removeMessages, .update, .notify, .queue,
      .presence, .log,
      .defaults, .peer, .lock, .claim, .release, .watch, .monitor, .names, .status,
      .doctor, .copy, .backup, .restore, .destroy, .cluster, .demo, .complete,
    ],
    version: "1.0.0-beta")
}
