/// Folders of one room that use each other's types, directly or through other folders: none of them can
/// be read before the others.
///
/// A folder is one directly below the room's; the files beside it are a folder, too.
enum FolderCircles {
  typealias File = (folder: String, path: String, text: SourceText)

  /// Returns the uses that close a circle: the first of each folder's uses of another one.
  static func findings(in files: [File]) -> [Finding] {
    let words = files.map(\.text.tokens)
    var homes: [String: Set<String>] = [:]
    for (file, words) in zip(files, words) {
      for name in Layers.declarations(in: words, of: Layers.types) {
        homes[name, default: []].insert(file.folder)
      }
    }
    var uses: [String: [String: Finding]] = [:]
    for (file, words) in zip(files, words) {
      var previous = ""
      for word in words {
        defer { previous = word.text }
        // After a dot it is a nested type; a name that two folders declare says nothing.
        guard previous != ".", let home = homes[word.text], home.count == 1, let home = home.first,
          home != file.folder, uses[file.folder]?[home] == nil
        else { continue }
        uses[file.folder, default: [:]][home] = Finding(
          file.path, word.line,
          "\(title(file.folder)) uses \(word.text) of \(title(home)), which leads back to it")
      }
    }
    return uses.sorted { $0.key < $1.key }.flatMap { folder, others in
      others.sorted { $0.key < $1.key }.filter { leads(from: $0.key, to: folder, uses) }
        .map(\.value)
    }
  }

  private static func leads(
    from start: String, to end: String, _ uses: [String: [String: Finding]]
  ) -> Bool {
    var reached: Set = [start]
    var rest = [start]
    while let folder = rest.popLast() {
      guard folder != end else { return true }
      for next in uses[folder, default: [:]].keys where reached.insert(next).inserted {
        rest.append(next)
      }
    }
    return false
  }

  private static func title(_ folder: String) -> String {
    folder.isEmpty ? "the room's own files" : folder
  }
}
