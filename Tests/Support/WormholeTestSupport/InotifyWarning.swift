extension String {
  /// What `doctor` printed, as it would be if the user's inotify instances were not nearly used up. All
  /// processes of the user take from the same number, the other tests and their neighbours, too.
  package var withoutInotifyWarning: String {
    replacing(
      /1\. Warning: The user's inotify instances .*?\n\n1 warning/.dotMatchesNewlines(),
      with: "nothing wrong")
  }
}
