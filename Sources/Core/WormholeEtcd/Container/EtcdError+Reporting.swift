package import Wormhole

extension EtcdError: EngineError {
  package func reported(_ action: String, path: String) -> WormholeError {
    let (code, remedy) = advice
    return WormholeError(code, action, path: path, reason: reason, remedy: remedy)
  }

  private var advice: (WormholeError.Code, String?) {
    switch code {
    // A server says "bad certificate" for an expired one, too.
    case .unreachable where reason.contains("certificate"):
      (
        .clusterUnreachable,
        "look whether ca= and cert= are valid now and of one authority: "
          + "openssl x509 -noout -issuer -dates -in FILE"
      )
    case .unreachable:
      (
        .clusterUnreachable,
        "look whether etcd runs there (etcdctl endpoint status), and whether it speaks TLS: then write etcds:// with "
          + "ca=, cert= and key="
      )
    case .outcomeUnknown:
      (.outcomeUnknown, "it was made or not, so look at the result before you repeat it")
    case .permissionDenied:
      (
        .permissionDenied,
        "give the user's role the prefix: "
          + "etcdctl role grant-permission ROLE readwrite PREFIX/ --prefix=true"
      )
    case .credentialsRefused where reason.contains(Self.commonName):
      (
        .permissionDenied,
        "where etcd has users, the certificate of cert= must have no common name (CN): "
          + "make it with openssl's -subj /O=NAME"
      )
    case .credentialsRefused: (.permissionDenied, "look at the user and the password")
    case .noSpace:
      (
        .noSpace,
        "etcd's database has reached its quota: compact it (etcdctl compact), defragment it, and disarm the alarm"
      )
    case .tooLarge:
      (.tooLarge, "at most 1 MiB fits; send large content as a file, or raise --max-request-bytes")
    case .leaseGone: (.leaseLost, "this process was not heard of for too long: begin again")
    case .containerGone: (.containerMissing, "open it again, which makes a new one")
    case .libraryMissing: (.notSupported, "install libcurl (Debian: apt-get install libcurl4)")
    case .compacted, .refused: (.inputOutput, nil)
    }
  }
}
