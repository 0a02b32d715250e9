/// The examples of the help and of the manual pages; a test runs each of them.
enum CommandExamples {
  static func lines(of names: [String]) -> [String] {
    (table[names.joined(separator: " ")] ?? []).map { line in
      line.replacing("wormhole ", with: ProgramName.called + " ")
    }
  }

  private static let table = Dictionary(
    uniqueKeysWithValues: text.split(separator: "\n\n").map { block in
      let lines = block.split(separator: "\n").map(String.init)
      return (lines[0], Array(lines.dropFirst()))
    })

  /// Blocks, each with the name of a command in its first line.
  private static let text = #"""
    send
    wormhole send seats 7
    wormhole send greeting hello --expires 5m
    echo '{"row":3}' | wormhole send ticket

    read
    wormhole read seats
    wormhole read 'seat*'
    wormhole read greeting --raw

    listen
    wormhole listen seats
    wormhole listen 'seat*' --current --count 1
    wormhole listen seats -- ./print

    remove
    wormhole remove seats greeting
    wormhole remove 'seat*'
    wormhole remove --all

    update
    wormhole update visitors --default 0 -- jq '. + 1'
    wormhole update from to -- jq '.from -= 5 | .to += 5'
    wormhole update settings -- ./change

    incr
    wormhole incr visitors
    wormhole incr budget -5 --expires 1h

    edit
    wormhole edit settings
    EDITOR='sed -i s/1/2/' wormhole edit settings

    notify post
    wormhole notify post lights
    wormhole notify set volume 7 && wormhole notify post volume

    notify wait
    wormhole notify wait lights
    wormhole notify wait lights volume --timeout 5m

    notify get
    wormhole notify get volume
    level=$(wormhole notify get volume)

    notify set
    wormhole notify set volume 7
    wormhole notify set volume 0 && wormhole notify post volume

    queue put
    wormhole queue put jobs '{"film":"Metropolis"}'
    wormhole queue put jobs report --at 07:00
    find . -name '*.jpg' | wormhole queue put jobs --lines --string

    queue take
    wormhole queue take jobs
    wormhole queue take jobs --follow --retries 3 -- ./print
    wormhole queue take jobs --follow -j 4 --limit 5m -- ./print

    queue peek
    wormhole queue peek jobs
    wormhole queue peek jobs --count 10 --envelope

    queue list
    wormhole queue list
    wormhole queue list jobs
    wormhole queue list jobs --json

    queue remove
    id=$(wormhole queue put jobs 8) && wormhole queue remove jobs "$id"
    wormhole queue remove jobs --failed

    queue purge
    wormhole queue purge jobs --yes
    wormhole queue purge jobs --yes --timeout 1m

    queue retry
    wormhole queue retry jobs --failed
    wormhole queue list jobs && wormhole queue retry jobs --failed

    presence enter
    wormhole presence enter till -- ./serve
    wormhole presence enter leader --exclusive --timeout 1h -- ./serve

    presence list
    wormhole presence enter till -- wormhole presence list
    wormhole presence enter till -- wormhole presence list till --json

    presence wait
    wormhole presence wait till --timeout 5m
    wormhole presence wait till --gone

    log append
    wormhole log append events '{"film":"Metropolis"}'
    ./serve | wormhole log append events --lines --string

    log read
    wormhole log read events
    wormhole log read events --as printer
    wormhole log read events --since 2h --details

    log follow
    wormhole log follow events --new
    wormhole log follow events --as printer -- ./print

    log bounds
    wormhole log bounds events
    wormhole log bounds events --messages 1000 --age 7d

    log remove
    wormhole log remove events printer
    wormhole log read events --as new && wormhole log remove events new

    defaults read
    wormhole defaults read
    wormhole defaults read volume

    defaults read-type
    wormhole defaults read-type volume
    wormhole defaults write name -string 7 && wormhole defaults read-type name

    defaults write
    wormhole defaults write volume 7
    wormhole defaults write films -array Metropolis M

    defaults remove
    wormhole defaults remove volume
    wormhole defaults remove gain --suite hall

    defaults rename
    wormhole defaults rename volume loudness
    wormhole defaults rename volume loudness --replace

    defaults find
    wormhole defaults find vol
    wormhole defaults find 7

    defaults domains
    wormhole defaults domains
    wormhole defaults write gain 1 --suite hall && wormhole defaults domains

    defaults watch
    wormhole defaults watch
    wormhole defaults watch volume

    defaults import
    wormhole defaults import settings.plist --merge
    echo '{"volume":7}' | wormhole defaults import - --replace --format json

    defaults export
    wormhole defaults export >settings.plist
    wormhole defaults export --format json

    peer list
    wormhole peer list
    wormhole peer list --watch

    peer serve
    wormhole peer serve desk -- cat
    wormhole peer serve desk -- ./answer

    peer request
    wormhole peer request till '[7,8]'
    wormhole peer request till '[7,8]' --timeout 2m

    peer send
    wormhole peer send watch hello
    wormhole peer send watch hello --key greeting --expires 1h

    peer receive
    wormhole peer receive watch
    wormhole peer receive watch --retries 3 -- ./print

    peer context
    wormhole peer context watch '{"theme":"dark"}'
    wormhole peer context watch

    peer transfer
    wormhole peer transfer watch poster.jpg
    wormhole peer transfer watch poster.jpg --metadata '{"film":7}'

    peer receive-files
    wormhole peer receive-files watch --into received
    wormhole peer receive-files watch --into received --count 1

    peer outstanding
    wormhole peer outstanding wormhole
    wormhole peer outstanding wormhole --forget

    peer forget
    wormhole peer forget --processed
    wormhole peer forget --failed

    peer retry
    wormhole peer retry --failed
    wormhole status && wormhole peer retry --failed

    peer remove
    id=$(wormhole peer send watch hello) && wormhole peer remove "$id"
    id=$(wormhole peer transfer watch poster.jpg) && wormhole peer remove "$id"

    peer launch set
    wormhole peer launch set printer -- ./serve
    wormhole peer launch set printer --on request,queued -- ./serve

    peer launch show
    wormhole peer launch show till
    wormhole peer launch show till >registration.json

    peer launch remove
    wormhole peer launch remove till
    wormhole peer launch remove till && wormhole peer list

    peer launch agent
    wormhole --container etcds://host-1/cinema peer launch agent
    wormhole --container etcds://host-1/cinema peer launch agent till

    pairing show
    wormhole pairing show
    wormhole pairing show --of phone

    pairing add
    wormhole pairing add watch-2
    wormhole pairing add watch-2 --without-complication

    pairing remove
    wormhole pairing remove watch
    wormhole pairing add watch-2 && wormhole pairing remove watch-2

    pairing switch
    wormhole pairing switch watch
    wormhole pairing add watch-2 && wormhole pairing switch watch-2

    run
    wormhole run --as till -- ./serve
    wormhole run --alone --as nightly --restart never -- ./backup

    lock
    wormhole lock settings.json -- sed -i s/old/new/ {}
    wormhole lock -n --name nightly-backup -- ./backup
    wormhole lock -w 5m settings.json -- ./change

    watch
    wormhole watch settings.json
    wormhole watch . --json

    monitor
    wormhole monitor
    wormhole monitor 'seat*' --only message --json

    ls
    wormhole ls
    wormhole ls 'seat*' --only message

    stat
    wormhole stat seats
    wormhole stat seats jobs --json

    status
    wormhole status
    wormhole status --watch
    wormhole status --json --pretty

    doctor
    wormhole doctor
    wormhole doctor --sweep

    copy
    wormhole copy ../copy
    wormhole copy etcds://host-1,host-2,host-3/cinema

    backup
    wormhole backup cinema.backup
    wormhole backup - | gzip >cinema.backup.gz

    restore
    wormhole --group group.com.example.new restore old.backup
    wormhole --container new restore - <old.backup

    destroy
    wormhole destroy --yes
    wormhole backup cinema.backup && wormhole destroy --yes

    groups
    wormhole groups
    wormhole groups --json

    etcd init
    wormhole etcd init host-1 host-2 host-3
    wormhole etcd init localhost --directory trial

    demo
    wormhole demo
    wormhole demo >demo.txt

    bench
    wormhole bench --quick
    wormhole bench --quick --json .
    """#

  /// What people do with several commands, for `help recipes`.
  static var recipes: String {
    #"""
    Share a value, and follow it:
      wormhole send seats '{"free":7}'
      wormhole listen seats --current

    Count, and change several values in one step:
      wormhole incr visitors
      wormhole update from to -- jq '.from -= 5 | .to += 5'

    Give work to several processes; none is lost, and one whose worker is stopped or
    killed is delivered again, marked:
      wormhole queue put jobs '{"film":"Metropolis"}'
      wormhole queue take jobs --follow -j 4 --retries 3 --limit 5m -- ./print

    Run a job at most once at a time, from cron on any number of machines:
      wormhole lock -n --name nightly-backup -- ./backup

    Elect a leader; another process succeeds it as soon as it dies:
      wormhole presence enter leader --exclusive --timeout 7d -- ./serve

    Record events, and let each reader go on where it was:
      wormhole log append events '{"sold":2}'
      wormhole log follow events --as printer -- ./print

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
