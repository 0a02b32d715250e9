import AppGroup
import PropertyLists

extension CommandDescription {
  static let groups = CommandDescription(
    name: "groups",
    abstract: "Print the groups that have a container, one line each.",
    discussion: """
      The first write to a group makes its container, in $XDG_DATA_HOME/app-groups, by default \
      ~/.local/share/app-groups. Containers that are named by a directory are not listed. With --json \
      a line is {"container": ..., "group": ...}.
      """,
    options: [
      .flag("json", help: "Print a line of JSON for each group instead of its name alone.")
    ],
    needsContainer: false
  ) { arguments, environment in
    for (group, path) in try ContainerLocation.groups() {
      try environment.print(
        line: arguments.has("json")
          ? JSONWriter.string(.object(["container": path, "group": group]))
          : group.withoutControlCharacters.replacing("\n", with: "\\n"))
    }
    return .done
  }
}
