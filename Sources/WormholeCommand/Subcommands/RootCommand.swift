/// The root of the tree of commands.
enum RootCommand {
  static let description = CommandDescription(
    name: "wormhole",
    abstract: "Pass messages between processes that share a directory.",
    discussion: """
      Values are JSON, one compact line each. What JSON lacks is written as {"$data": \
      "<base64>"}, {"$date": "<ISO 8601>"} and {"$real": "nan"}, and read back so; a dictionary \
      that really has such a lone key gets one more $ before it: {"$$data": ...}.

      Exit status: 0 done; 1 no (no message, busy, unreachable); 64 usage; 65 bad data; 74 \
      input/output; 77 permission; 124 the deadline passed; 141 nobody reads the output. A command \
      that runs another one ends with that one's status: 126 and 127 when it cannot be run, 128 and \
      the signal's number when it was killed. A command whose file system does not answer ends when \
      its --timeout has passed, with 124; without one it ends with 74 after 10 seconds, unless it \
      is listening already.
      """,
    globalOptions: ContainerSelection.options,
    subcommands: [
      SendCommand.description, ReadCommand.description, ListenCommand.description,
      ClearCommand.description, UpdateCommand.description, NotifyCommand.description,
      DefaultsCommand.description, PeerCommand.description, LockCommand.description,
      WatchCommand.description, StatusCommand.description, DoctorCommand.description,
      GroupsCommand.description, DemoCommand.description,
    ],
    version: "0.1.0")

  /// Those that run, a value for each command of the description that has no subcommands.
  static let subcommands: [any Subcommand] =
    [
      SendCommand(), ReadCommand(), ListenCommand(), ClearCommand(), UpdateCommand(),
      NotifyPostCommand(), NotifyWaitCommand(), NotifyGetCommand(), NotifySetCommand(),
      DefaultsReadCommand(), DefaultsWriteCommand(), DefaultsDeleteCommand(),
      DefaultsWatchCommand(), DefaultsImportCommand(), DefaultsExportCommand(),
      LockCommand(), WatchCommand(), StatusCommand(), DoctorCommand(), GroupsCommand(),
      DemoCommand(),
    ] + PeerCommand.subcommands
}
