/// A signal. The C names are in `signal(7)`.
package enum Signal: Int32, Sendable {
  case hangUp = 1
  case interrupt = 2
  case quit = 3
  case kill = 9
  case brokenPipe = 13
  case terminate = 15
  case childEnded = 17
  case `continue` = 18
  case stop = 19
  case terminalStop = 20
  case fileTooLarge = 25
  case windowChanged = 28
}
