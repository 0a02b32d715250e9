import Testing
import WormholeTestSupport

@testable import WormholeCommand

@Suite("The command lines of peers mean what their help says", .blocking) struct PeerGrammarTests {
  private let line = Invocations()

  @Test("An option that may be repeated keeps each value, in order")
  func repeating() throws {
    let parsed = try line.arguments(
      "peer", "launch", "watch", "--env", "A=1", "--env=B=x=y", "--budget", "4",
      "--", "watchd", "--env", "C=2")
    #expect(parsed.commandPath == ["peer", "launch"])
    #expect(parsed.texts("env") == ["A=1", "B=x=y"])
    #expect(parsed.count("budget") == 4)
    #expect(parsed.tail == ["watchd", "--env", "C=2"])
  }

  @Test("A variable is NAME=value")
  func assignments() {
    for text in ["A", "=1", ""] {
      #expect(
        line.refusal("peer", "launch", "w", "--env", text, "--", "x")?
          .contains("expected NAME=value") == true, "\(text)")
    }
    #expect(line.refusal("peer", "launch", "w", "--env", "A=", "--", "x") == nil)
  }

  @Test("Occasions are a list, each known, and 'never' is alone")
  func occasions() throws {
    let set = { line.refusal("peer", "launch", "w", "--on", $0, "--", "x") }
    for good in ["request", "request,queued", "urgent,request,queued", "never"] {
      #expect(set(good) == nil, "\(good)")
    }
    #expect(set("request,queud")?.contains("did you mean 'queued'?") == true)
    for bad in ["", "request,", "request, queued"] {
      #expect(set(bad)?.contains("please provide one of 'request'") == true, "\(bad)")
    }
    #expect(set("never,request")?.contains("'never' excludes the other occasions") == true)
  }

  @Test("An option that needs another one is refused without it, not ignored")
  func conditions() {
    let refused: [([String], String)] = [
      (["send", "w", "1", "--timeout", "1"], "--timeout needs --wait"),
      (["send", "w", "--file", "f", "--timeout", "1"], "--timeout needs --wait"),
      (["send", "w", "--file", "f", "--key", "k"], "--file and --key exclude each other"),
      (["list", "--count", "1"], "need --watch"),
      (["list", "--timeout", "1"], "need --watch"),
      (
        ["receive", "w", "--files", ".", "--retries", "1"],
        "--files and --retries exclude each other"
      ),
      (["context", "w", "1", "--remove"], "exclude each other"),
      (["serve", "w"], "missing expected argument '-- <command> ...'"),
      (["launch", "w", "--on", "never"], "--on needs a program after '--'"),
      (["launch", "w", "--remove", "--", "x"], "--remove and a program exclude each other"),
      (["launch"], "missing expected argument '<name>'"),
      (["launch", "v", "w"], "several names need --agent"),
      (["pairing", "--remove"], "--remove needs a watch"),
      (["pairing", "w", "--remove", "--activate"], "--remove and --activate exclude each other"),
      (["request", ""], "must not be empty"),
      (["transfers", "--retry", "a", "--forget", "b"], "exclude each other"),
      (["send", "w", "1", "--wait", "taken"], "please provide one of 'processed'"),
      (["recieve", "w"], "did you mean 'wormhole peer receive w'?"),
    ]
    for (words, reason) in refused {
      let found = Self.refusal(["peer"] + words)
      #expect(found?.contains(reason) == true, "\(words): \(found ?? "accepted")")
    }
    #expect(Self.refusal(["peer", "send", "w", "1", "--wait", "processed"]) == nil)
    #expect(Self.refusal(["peer", "list", "--watch", "--count", "1"]) == nil)
    #expect(Self.refusal(["peer", "pairing"]) == nil)
  }

  private static func refusal(_ words: [String]) -> String? {
    do {
      _ = try Invocations().parse(words)
      return nil
    } catch {
      return error.reason
    }
  }
}
