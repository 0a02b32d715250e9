import WormholeSystem

/// The machines of an etcd cluster, and the containers on it: what `etcd init` writes files for.
struct ClusterPlan: Sendable {
  let hosts: [String]
  /// The prefixes of the containers; with TLS each has its own user.
  let containers: [String]
  let isEncrypted: Bool

  /// The directory of a member on its machine, with its configuration and its data.
  static let place = "/var/lib/wormhole-etcd"
  static let service = "wormhole-etcd.service"

  static func problem(withHost host: String) -> String? {
    if isPlain(host, besides: "-.") || isIPv6Address(host) { return nil }
    let advice = host.split(separator: ":").count == 2 ? "; the ports are always 2379 and 2380" : ""
    return "\(host.quoted) is neither a name nor an address of a machine" + advice
  }

  /// Returns why a word cannot be a prefix and the name of a user, or nil.
  static func problem(withContainer name: String) -> String? {
    isPlain(name, besides: "-_") && name != administrator
      ? nil : "\(name.quoted) is not a name of letters, digits, '-' and '_' other than 'root'"
  }

  private static func isPlain(_ word: String, besides others: String) -> Bool {
    !word.isEmpty && !word.hasPrefix("-")
      && word.utf8.allSatisfy {
        $0.isDigit || (UInt8(ascii: "a")...UInt8(ascii: "z")).contains($0 | 32)
          || others.utf8.contains($0)
      }
  }

  /// etcd's name for the user who may do everything.
  static let administrator = "root"

  var scheme: String { isEncrypted ? "https" : "http" }

  static func isAddress(_ host: String) -> Bool {
    host.contains(":") || host.utf8.allSatisfy { $0.isDigit || $0 == UInt8(ascii: ".") }
  }

  func address(_ host: String, port: Int) -> String {
    "\(scheme)://\(host.contains(":") ? "[\(host)]" : host):\(port)"
  }

  var endpoints: String { hosts.map { address($0, port: 2379) }.joined(separator: ",") }

  /// The location of a container, whose user's files are in the directory `files`.
  func location(of container: String, files: String) -> String {
    let list = hosts.map { $0.contains(":") ? "[\($0)]" : $0 }.joined(separator: ",")
    guard isEncrypted else { return "etcd://\(list)/\(container)" }
    let files = files.replacing("%", with: "%25").replacing("&", with: "%26")
    return "etcds://\(container)@\(list)/\(container)?ca=\(files)/ca.pem&cert=\(files)/client.pem"
      + "&key=\(files)/client.key&password-file=\(files)/password"
  }
  // MARK: The files

  /// etcd's configuration of a member. Its paths begin in the directory where etcd is started.
  func configuration(of host: String) -> String {
    // One address for IPv4 and IPv6 does not exist on machines without IPv6.
    let any = hosts.contains { $0.contains(":") } ? "::" : "0.0.0.0"
    var lines = [
      "# A member of a cluster for wormhole; `wormhole etcd init` wrote this.",
      "name: \"\(host)\"",
      "data-dir: data",
      "listen-client-urls: \"\(address(any, port: 2379))\"",
      "advertise-client-urls: \"\(address(host, port: 2379))\"",
      "listen-peer-urls: \"\(address(any, port: 2380))\"",
      "initial-advertise-peer-urls: \"\(address(host, port: 2380))\"",
      "initial-cluster: \""
        + hosts.map { "\($0)=\(address($0, port: 2380))" }.joined(separator: ",") + "\"",
      "initial-cluster-token: wormhole",
      "initial-cluster-state: new",
      "# Programs use it; with a file like this one it is off by default.",
      "enable-grpc-gateway: true",
      "# Without it the history of all changes grows until the database is full.",
      "auto-compaction-mode: periodic",
      "auto-compaction-retention: \"5m\"",
    ]
    if isEncrypted {
      for (kind, what) in [("client", "programs"), ("peer", "the other members")] {
        lines += [
          "# Only \(what) may connect: with a certificate of the cluster's authority.",
          "\(kind)-transport-security:", "  cert-file: member.pem", "  key-file: member.key",
          "  trusted-ca-file: ca.pem", "  client-cert-auth: true",
        ]
      }
    }
    return lines.map { $0 + "\n" }.joined()
  }

  func unit(of host: String) -> String {
    """
    [Unit]
    Description=etcd for wormhole, the member \(host)
    After=network-online.target
    Wants=network-online.target

    [Service]
    # It is ready when a majority of the members runs.
    Type=notify
    TimeoutStartSec=infinity
    User=etcd
    WorkingDirectory=\(Self.place)
    ExecStart=/usr/bin/env etcd --config-file etcd.yml
    Restart=on-failure
    RestartSec=2
    LimitNOFILE=65536

    [Install]
    WantedBy=multi-user.target

    """
  }

  var installation: String {
    """
    #!/bin/sh
    # Installs this member of the cluster on this machine, and starts it. Run it as root.
    set -eu
    cd "$(dirname "$0")"
    if ! command -v etcd >/dev/null; then
      apt-get update
      apt-get install -y --no-install-recommends etcd-server
    fi
    # Debian's own service has the same port, with a cluster of one member on this machine.
    systemctl disable --now etcd 2>/dev/null || true
    id etcd >/dev/null 2>&1 || useradd --system --home-dir \(Self.place) --shell /usr/sbin/nologin etcd
    mkdir -p \(Self.place)/data
    for file in etcd.yml *.pem *.key; do
      # Without TLS there are no certificates.
      if [ -e "$file" ]; then install -m 0600 "$file" \(Self.place)/; fi
    done
    chmod 0700 \(Self.place) \(Self.place)/data
    chown -R etcd: \(Self.place)
    install -m 0644 \(Self.service) /etc/systemd/system/
    systemctl daemon-reload
    systemctl enable \(Self.service)
    # It waits for the other members, so nobody waits for it.
    systemctl restart --no-block \(Self.service)

    """
  }

  var users: String {
    let rights = containers.map { name in
      """
      once role add \(name)
      ask role grant-permission \(name) readwrite \(name)/ --prefix=true >/dev/null
      user \(name)
      once user grant-role \(name) \(name)

      """
    }
    return """
      #!/bin/sh
      # Creates the users and their rights, when all members run. Running it again does no harm.
      set -eu
      cd "$(dirname "$0")/clients"
      if ! command -v etcdctl >/dev/null; then
        echo "etcdctl is missing (Debian: apt-get install etcd-client)" >&2
        exit 1
      fi
      # An earlier run has made etcd ask for the password; before that it is ignored.
      ask() {
        ETCDCTL_API=3 ETCDCTL_USER="root:$(cat root/password)" etcdctl --endpoints '\(endpoints)' --dial-timeout 10s --command-timeout 30s \\
          --cacert root/ca.pem --cert root/client.pem --key root/client.key "$@"
      }
      # What an earlier run has created already is right.
      once() {
        said=$(ask "$@" 2>&1) || case $said in
        *already*) ;;
        *)
          echo "$said" >&2
          exit 1
          ;;
        esac
      }
      user() { once user add "$1" --interactive=false <"$1/password"; }
      once role add root
      user root
      once user grant-role root root
      \(rights.joined())ask auth enable

      """
  }
}
