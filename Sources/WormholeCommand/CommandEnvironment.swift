/// What a command sees of the process around it; tests pass their own.
struct CommandEnvironment: Sendable {
  /// Looks up an environment variable.
  let variable: @Sendable (String) -> String?
  /// Everything up to the end of standard input.
  let readStandardInput: @Sendable () throws -> [UInt8]
  let writeStandardOutput: @Sendable ([UInt8]) throws -> Void
  /// For people; a failure to write there has nowhere to be reported.
  let writeStandardError: @Sendable ([UInt8]) -> Void
  /// From now on the program ends when nobody reads standard output any more.
  var endWithReader: @Sendable () -> Void = {}
  /// The width of sentences that people read.
  var columns = 80
  /// Whether people read standard output.
  var isTerminal = false
  /// Whether people type standard input.
  var isInputTerminal = false
  /// The width of standard error where that is a terminal.
  var errorColumns: Int?
  /// Ends the process when a file system does not answer; nil where the process is not ours.
  var answers: AnswerWatch?

  /// The width of tables; nil for one line each, however long, where a program reads them.
  var tableColumns: Int? { isTerminal ? columns : nil }

  /// Runs what may take any time: a program of the user's.
  func withoutTimeLimit<Result>(_ body: () throws -> Result) rethrows -> Result {
    try answers?.suspended(body) ?? body()
  }
}
