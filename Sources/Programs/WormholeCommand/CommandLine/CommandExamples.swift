/// The examples of the help and of the manual pages; a test runs each of them.
enum CommandExamples {
  /// The examples of the last command of a path; none of a command with subcommands.
  static func lines(of path: [CommandDescription]) -> [String] {
    guard path.last?.run != nil else { return [] }
    let command = path.dropFirst().map(\.name).joined(separator: " ")
    return text.split(separator: "\n").filter { line in
      let last = line.split(separator: "wormhole ").last ?? ""
      return last == command || last.hasPrefix(command + " ")
    }
    .map { String($0.replacing("wormhole ", with: ProgramName.called + " ")) }
  }

  /// Each line is an example of the command that it runs last.
  private static let text = #"""
    wormhole send seats 7
    wormhole send greeting hello --expires 5m
    echo '{"row":3}' | wormhole send ticket
    wormhole read seats
    wormhole read 'seat*'
    wormhole read greeting --format raw
    wormhole listen seats
    wormhole listen 'seat*' --current --count 1
    wormhole listen seats -- ./print
    wormhole remove seats greeting
    wormhole remove 'seat*'
    wormhole remove --all
    wormhole update visitors --default 0 -- jq '. + 1'
    wormhole update from to -- jq '.from += -5 | .to += 5'
    wormhole update visitors --add 1
    wormhole update budget --add -5 --expires 1h

    wormhole notify post lights
    wormhole notify set volume 7 && wormhole notify post volume
    wormhole notify wait lights
    wormhole notify wait lights volume --timeout 5m
    wormhole notify wait lights -- ./print
    wormhole notify get volume
    level=$(wormhole notify get volume)
    wormhole notify set volume 7
    wormhole notify remove volume
    wormhole notify set volume 7 && wormhole notify remove volume

    wormhole queue put jobs '{"film":"Metropolis"}'
    wormhole queue put jobs report --at 07:00
    find . -name '*.jpg' | wormhole queue put jobs --lines --as string
    wormhole queue put jobs --env PATH -- ./print -n 2
    wormhole queue take jobs
    wormhole queue take jobs --follow --retries 3 -- ./print
    wormhole queue take jobs --follow -j 4 --limit 5m -- ./print
    wormhole queue take jobs --run -j 4
    wormhole queue list
    wormhole queue list jobs
    wormhole queue list jobs --next --count 10
    id=$(wormhole queue put jobs -- ./print) && wormhole queue list jobs "$id"
    id=$(wormhole queue put jobs 8) && wormhole queue remove jobs "$id"
    wormhole queue remove jobs --failed
    wormhole queue remove jobs --all --yes
    wormhole queue retry jobs --failed
    wormhole queue list jobs && wormhole queue retry jobs --failed

    wormhole presence enter till -- ./serve
    wormhole presence enter till --content '{"port":8080}' -- ./serve
    wormhole presence enter till -- wormhole presence list
    wormhole presence enter till -- wormhole presence list till --json
    wormhole presence wait till --timeout 5m
    wormhole presence wait till --gone
    wormhole presence wait till -- ./print

    wormhole log append events '{"film":"Metropolis"}'
    ./serve | wormhole log append events --lines --as string
    wormhole log read events
    wormhole log read events --subscriber printer
    wormhole log read --follow events --new
    wormhole log read --follow events --subscriber printer -- ./print
    wormhole log bounds events
    wormhole log bounds events --messages 1000 --age 7d
    wormhole log remove events --subscriber printer
    wormhole log remove events --yes
    wormhole log append sales 7 && wormhole log remove sales --yes

    wormhole defaults read
    wormhole defaults read volume
    wormhole defaults write name -string 7 && wormhole defaults read name
    wormhole defaults write volume 7
    wormhole defaults write films -array Metropolis M
    wormhole defaults remove volume
    wormhole defaults remove gain --suite hall
    wormhole defaults remove --all --suite hall
    wormhole defaults watch
    wormhole defaults watch volume
    wormhole defaults watch volume -- ./print
    wormhole defaults import settings.plist --merge
    echo '{"volume":7}' | wormhole defaults import - --replace --format json
    wormhole defaults export >settings.plist
    wormhole defaults export --format json

    wormhole peer list
    wormhole peer list --watch
    wormhole peer serve desk -- cat
    wormhole peer serve desk -- ./answer
    wormhole peer request till '[7,8]'
    wormhole peer request till '[7,8]' --timeout 2m
    wormhole peer send watch hello
    wormhole peer send watch hello --key greeting --expires 1h
    wormhole peer receive watch
    wormhole peer receive watch --retries 3 -- ./print
    wormhole peer context watch '{"theme":"dark"}'
    wormhole peer context watch
    wormhole peer send watch --file poster.jpg
    wormhole peer send watch '{"film":7}' --file poster.jpg
    wormhole peer receive watch --files received
    wormhole peer transfers wormhole
    wormhole peer transfers --forget processed
    wormhole status && wormhole peer transfers --retry failed
    id=$(wormhole peer send watch hello) && wormhole peer transfers --remove "$id"
    wormhole peer launch printer --on request,queued -- ./serve
    wormhole peer launch till
    wormhole peer launch --remove till
    wormhole peer launch --agent --container etcds://host-1/cinema
    wormhole peer pairing
    wormhole peer pairing watch-2 --without-complication
    wormhole peer pairing --remove watch
    wormhole peer pairing --activate watch

    wormhole lock settings.json -- sed -i s/old/new/ {}
    wormhole lock -n --name nightly-backup -- ./backup
    wormhole lock -w 5m settings.json -- ./change

    wormhole claim build
    wormhole claim build --as agent-7 --for 10m --pid $$
    fence=$(wormhole claim build --as agent-7 -w 1m)
    wormhole claim build --as a && wormhole claim
    wormhole claim build && wormhole release build
    wormhole claim build --as agent-7 && wormhole release build --as agent-7
    wormhole watch settings.json
    wormhole watch . --json
    wormhole watch settings.json -- ./print
    wormhole monitor
    wormhole monitor 'seat*' --only value --json
    wormhole ls
    wormhole ls 'seat*' --only value
    wormhole ls -l seats
    wormhole ls --groups
    wormhole status
    wormhole status --watch
    wormhole status --json
    wormhole doctor
    wormhole doctor --sweep
    wormhole copy ../copy
    wormhole copy etcds://host-1,host-2,host-3/cinema
    wormhole backup cinema.backup
    wormhole backup - | tar -tzf -
    wormhole restore old.backup --group group.com.example.new
    wormhole restore - --container new <old.backup
    wormhole destroy --yes
    wormhole backup cinema.backup && wormhole destroy --yes

    wormhole etcd init host-1 host-2 host-3
    wormhole etcd init localhost --directory trial

    wormhole demo
    wormhole demo >demo.txt
    """#

  /// What people do with several commands, for `help recipes`.
  static var recipes: String {
    #"""
    Share a value, and follow it:
      wormhole send seats '{"free":7}'
      wormhole listen seats --current

    Count, and change several values in one step:
      wormhole update visitors --add 1
      wormhole update from to -- jq '.from += -5 | .to += 5'

    Give work to several processes; none is lost, and one whose worker is stopped or
    killed is delivered again, marked:
      wormhole queue put jobs '{"film":"Metropolis"}'
      wormhole queue take jobs --follow -j 4 --retries 3 --limit 5m -- ./print

    Run commands later, in the directory of now, and keep what they print:
      wormhole queue put jobs -- ./print --copies 2
      wormhole queue take jobs --run -j 4

    Run a job at most once at a time, from cron on any number of machines:
      wormhole lock -n --name nightly-backup -- ./backup

    Elect a leader; another process succeeds it as soon as it dies:
      wormhole lock --name leader -w 7d -- ./serve

    Record events, and let each reader go on where it was:
      wormhole log append events '{"sold":2}'
      wormhole log read --follow events --subscriber printer -- ./print

    Ask a running process:
      wormhole peer serve till -- ./answer
      wormhole peer request till '[7,8]'

    See what happens, and what is wrong:
      wormhole monitor
      wormhole status --watch
      wormhole doctor

    """#.replacing("wormhole ", with: ProgramName.called + " ")
  }
}
