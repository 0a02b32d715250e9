import Foundation
import Testing
import WormholePropertyLists
import WormholeTestSupport

/// Python's `plistlib`, which shares no code with this package, as the other side of a comparison.
enum Python {
  /// Whether python3 can be started; tests that need it report this when they are skipped.
  static let isInstalled: Bool = {
    let directories = ProcessInfo.processInfo.environment["PATH"]?.split(separator: ":") ?? []
    return directories.contains {
      FileManager.default.isExecutableFile(atPath: "\($0)/python3")
    }
  }()

  /// On the build server a missing Python is a failure, not a reason to skip.
  static let mayRun = isInstalled || ProcessInfo.processInfo.environment["CI"] != nil

  enum Request {
    /// Reads a file; the answer is its dump.
    case read([UInt8])
    /// Writes a value; the answer is the file in hex.
    case writeBinary(PropertyListValue)
    case writeXML(PropertyListValue)

    var line: String {
      switch self {
      case .read(let bytes): "L " + hex(bytes)
      case .writeBinary(let value): "B " + textualDump(value)
      case .writeXML(let value): "X " + textualDump(value)
      }
    }
  }

  /// Returns one answer line for each request of a batch, from one process; `E …` if Python raised.
  static func answers(to requests: [Request]) throws -> [String] {
    let place = try TemporaryDirectory()
    defer { withExtendedLifetime(place) {} }
    let directory = URL(fileURLWithPath: place.path)
    let script = directory.appendingPathComponent("answer.py")
    let input = directory.appendingPathComponent("requests")
    let output = directory.appendingPathComponent("answers")
    try Data(pythonScript.utf8).write(to: script)
    try Data(requests.map { $0.line + "\n" }.joined().utf8).write(to: input)
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = ["python3", script.path, input.path, output.path]
    try process.run()
    process.waitUntilExit()
    try #require(process.terminationStatus == 0, "python3 failed")
    let text = try String(contentsOf: output, encoding: .utf8)
    let lines = text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
    try #require(lines.count == requests.count + 1)
    return lines.dropLast()
  }
}

private let pythonScript = """
  import datetime, plistlib, struct, sys
  sys.setrecursionlimit(20000)
  EPOCH = datetime.datetime(2001, 1, 1)

  def dump(value, words):
      if isinstance(value, bool): words.append('B1' if value else 'B0')
      elif isinstance(value, str): words.append('S' + value.encode('utf-8').hex())
      elif isinstance(value, int): words.append('I%d' % value)
      elif isinstance(value, float): words.append('R%x' % struct.unpack('>Q', struct.pack('>d', value)))
      elif isinstance(value, datetime.datetime):
          words.append('T%d' % ((value - EPOCH) // datetime.timedelta(microseconds=1)))
      elif isinstance(value, bytes): words.append('X' + value.hex())
      elif isinstance(value, list):
          words.append('A%d' % len(value))
          for element in value: dump(element, words)
      elif isinstance(value, dict):
          words.append('D%d' % len(value))
          for key in sorted(value, key=lambda key: key.encode('utf-8')):
              dump(key, words)
              dump(value[key], words)
      else: raise TypeError(str(type(value)))

  def parse(words):
      word = next(words)
      kind, text = word[0], word[1:]
      if kind == 'S': return bytes.fromhex(text).decode('utf-8')
      if kind == 'I': return int(text)
      if kind == 'R': return struct.unpack('>d', struct.pack('>Q', int(text, 16)))[0]
      if kind == 'B': return text == '1'
      if kind == 'T': return EPOCH + datetime.timedelta(microseconds=int(text))
      if kind == 'X': return bytes.fromhex(text)
      if kind == 'A': return [parse(words) for _ in range(int(text))]
      return {parse(words): parse(words) for _ in range(int(text))}

  def answer(line):
      kind, rest = line[0], line[2:]
      if kind == 'L':
          words = []
          dump(plistlib.loads(bytes.fromhex(rest)), words)
          return ' '.join(words)
      value = parse(iter(rest.split(' ')))
      fmt = plistlib.FMT_BINARY if kind == 'B' else plistlib.FMT_XML
      return plistlib.dumps(value, fmt=fmt).hex()

  with open(sys.argv[1]) as requests, open(sys.argv[2], 'w') as answers:
      for line in requests:
          try: text = answer(line.rstrip('\\n'))
          except Exception as error: text = 'E %r' % (error,)
          answers.write(text.replace('\\n', ' ') + '\\n')
  """
