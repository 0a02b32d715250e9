"""A container of the package Wormhole, in Python: values, notifications, logs and queues.

    container = Container("/srv/cinema")                    # an existing directory with the mode 0700
    container.update("seats", lambda seats: (seats or 0) + 1)
    container.post("lights-out")
    container.append("sales", {"film": "Metropolis"})
    container.send("jobs", "box office", "print the tickets")
    with contextlib.closing(Worker(container, "jobs")) as worker:
        while entry := worker.next(timeout=5):
            worker.acknowledge(entry)

Follows the pages OnDiskFormat and RulesOfTheLease, whose rules the comments cite. It needs Python 3.9, Linux
5.6, and a file system with all modes of renameat2(2). No call waits longer than its timeout, in seconds; where others
wait for an event, it looks again after a moment. What fails raises a WormholeError: what failed, on which file, why,
who is in the way, and what to do. Objects are for one thread each.

Left out: groups' containers, names that need a digest, durable changes, changes of several values (those of others are
settled), what a loss of power took, numbers of notifications, subscribers of logs, taking messages away, exclusive
roles, attachments, receipts, parts of batches (others' are taken), leases kept or handed over, and copiers.
"""
from __future__ import annotations

import contextlib, ctypes, datetime, errno, fcntl, functools, glob, os, pathlib, plistlib, re, secrets, stat, struct
import time, urllib.parse
from typing import Any, Callable, Iterator, NamedTuple

WAIT, TERM, GRACE = 10.0, 2.0, 0.05  # seconds: for others; of a lease; for a stopped process
NOREPLACE, EXCHANGE, LOCK = 1, 2, fcntl.LOCK_EX | fcntl.LOCK_NB  # renameat2(2), flock(2)
NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
ADD = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
BATCH = re.compile(r"([0-9a-f]{16})-([!-~]+)-(\d+)-\d+(?:\+(\d+)|@([0-9a-f]{16}))?\.plist")
DECLARATION = re.compile("x" + "-([0-9a-f]+)" * 5 + "-[0-9a-f]+")
ABSENT = contextlib.suppress(FileNotFoundError)
nonce = functools.partial(secrets.token_hex, 8)
uptime = functools.partial(time.clock_gettime_ns, time.CLOCK_BOOTTIME)
dumps = functools.partial(plistlib.dumps, fmt=plistlib.FMT_BINARY)
now = lambda: datetime.datetime.now(datetime.timezone.utc).replace(tzinfo=None)
_libc = ctypes.CDLL(None, use_errno=True)
BOOT = pathlib.Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


class WormholeError(Exception):
    """Any failure, in a sentence; the others are kinds of it."""
    def __init__(self, action: str, path: str, reason: str, remedy: str) -> None:
        super().__init__(f"cannot {action} '{path}': {reason}; {remedy}")

class TimedOut(WormholeError):
    """The deadline has passed; the sentence names the process in the way."""

class Lost(WormholeError):
    """Others took over what this process had, because it was stopped or took too long."""

@contextlib.contextmanager
def reporting(action: str, path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        remedy = "make room" if error.errno in (errno.ENOSPC, errno.EDQUOT) else "see to that file"
        raise WormholeError(action, path, f"{error.strerror} ({error.filename})", f"{remedy}, and try again") from error

# Calls of the system. `at` is the descriptor of the directory where a path begins.
def _checked(result: int, path: str) -> int:
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), path)
    return result

def open_beneath(at: int, path: str, flags: int = os.O_NONBLOCK) -> int:
    """openat2(2): through no link, not out of the directory, and without waiting at a FIFO."""
    how = struct.pack("QQQ", flags | os.O_RDONLY | os.O_CLOEXEC, 0, 0x04 | 0x08)
    return _checked(_libc.syscall(437, at, os.fsencode(path), how, len(how)), path)

def rename(at: int, source: str, target: str, mode: int = 0) -> None:
    _checked(_libc.renameat2(at, os.fsencode(source), at, os.fsencode(target), mode), target)

def attempt(call: Callable[..., Any], *arguments: Any, **options: Any) -> bool:
    """Makes a call; false if a file is missing, there already or locked, or a directory is not empty."""
    try:
        call(*arguments, **options)
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.EEXIST, errno.EAGAIN, errno.ENOTEMPTY):
            raise
        return False
    return True

def unlink(at: int, path: str) -> bool:
    return attempt(os.unlink, path, dir_fd=at)

def look(at: int, path: str) -> os.stat_result | None:
    with ABSENT:
        return os.stat(path, dir_fd=at, follow_symlinks=False)
    return None

def make(at: int, path: str) -> None:
    for end in re.finditer("/|$", path):  # those above it, too
        attempt(os.mkdir, path[:end.start()], 0o700, dir_fd=at)

def entries(at: int, path: str) -> list[str]:
    """The names in a directory; none if there is no such directory."""
    with ABSENT:
        return os.listdir(f"/proc/self/fd/{at}/{path}")
    return []

def read(at: int, path: str) -> tuple[bytes, os.stat_result] | None:
    """The content of a regular file of the container's owner; None if there is none."""
    with ABSENT, open(open_beneath(at, path), "rb") as file:
        status = os.fstat(file.fileno())
        if stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid() and status.st_size <= 64 << 20:
            return file.read(), status
        raise WormholeError("read", path, "it is not a file of its owner with at most 64 MiB", "remove it")
    return None

def create(at: int, path: str, content: bytes = b"", durable: bool = False) -> int:
    """Creates a file, locks it, so that others leave it alone, and writes it to the disk."""
    while not attempt(fcntl.flock, file := os.open(path, NEW, 0o600, dir_fd=at), LOCK) or os.fstat(file).st_nlink == 0:
        os.close(file)  # a sweeper was faster
        unlink(at, path)
    while content:
        content = content[os.write(file, content):]
    os.utime(file, ns=(time.time_ns(),) * 2)  # its version: the kernel's own times are too coarse
    os.fsync(file) if durable else _libc.sync_file_range(file, 0, 0, 7)
    return file

def loads(content: bytes, path: str) -> Any:
    try:
        return plistlib.loads(content)
    except Exception as error:  # plistlib raises many kinds for bytes of any origin
        raise WormholeError("read", path, f"it is not a property list ({error!r})", "publish again") from error

def encode(name: str) -> str:
    """The name of a name's directory."""
    return re.sub(rb"^\.|[^A-Za-z0-9\-_.@+=,]", lambda found: b"%%%02X" % found[0][0], name.encode()).decode() or "%"

@functools.cache
def own_process(pid: int) -> tuple[int, int, int]:
    """This process's number, its start in ticks, and the namespace of its number: its inode mixed by FNV-1a."""
    mixed = 0xCBF29CE484222325 ^ os.stat("/proc/self/ns/pid").st_ino
    mixed ^= (os.stat("/proc/self/ns/time").st_ino ^ 0xEFFFFFFA) << 32
    mixed = functools.reduce(lambda sum, byte: (sum ^ byte) * 0x100000001B3 % (1 << 64), f"{BOOT}\n".encode(), mixed)
    is_shown = os.readlink("/proc/self") == str(pid)  # otherwise /proc is another namespace's
    return pid, int(_status(pid)[19]), mixed if is_shown else 0

def process_state(pid: int, start: int, namespace: int) -> str:
    """"running", "stopped", "gone", or "unknown" for one that cannot be seen from here."""
    if not namespace or namespace != own_process(os.getpid())[2]:
        return "unknown"
    fields = _status(pid)
    if not fields or int(fields[19]) != start or fields[0] in "XZ" and int(fields[17]) <= 1:
        return "gone"
    return "stopped" if fields[0] in "tT" else "running"

def _status(pid: int) -> list[str]:
    """The fields after the program's name in proc_pid_stat(5)."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError), open(f"/proc/{pid}/stat", "rb") as file:
        return file.read().rpartition(b") ")[2].decode().split()
    return []

def has_children(pid: int) -> bool:
    """They may have its lock, and work."""
    with contextlib.suppress(OSError):
        return any(pathlib.Path(path).read_text() for path in glob.glob(f"/proc/{pid}/task/*/children"))
    return True

def declarations(names: list[str]) -> dict[str, list[int]]:
    """What holders of a lease declare (rule 3): process, start, namespace, and since when, and for how long, in ms."""
    found = filter(None, map(DECLARATION.fullmatch, names))
    return {name[0]: [int(number, 16) for number in name.groups()] for name in found}


class Lease:
    """The right to change the files of one name. Once it was taken over, each step raises FileNotFoundError."""
    def __init__(self, top: int, place: str, until: float, term: float) -> None:
        self.top, self.path, self.term = top, f"{place}/lease", term
        while True:  # until it is not taken over meanwhile, by us or others
            make(top, f"{self.path}/held")
            with ABSENT, contextlib.ExitStack() as stack:
                self.held = open_beneath(self.top, f"{self.path}/held", os.O_DIRECTORY)
                stack.callback(os.close, self.held)
                self._acquire(until)
                self._begin()
                stack.pop_all()
                return

    def _acquire(self, until: float) -> None:
        seen, pause = {}, 0.0001
        while not attempt(fcntl.flock, self.held, LOCK):
            if (moment := time.monotonic()) >= until:
                holders = declarations(os.listdir(self.held)).values()
                who = ", ".join(f"process {one[0]}, which is {process_state(*one[:3])}," for one in holders) or "others"
                raise TimedOut("change", self.path, f"the deadline passed while {who} held it", "wait longer")
            if self._is_overdue(seen, moment):  # rule 4
                rename(self.top, f"{self.path}/held", broken := f"{self.path}/broken-{nonce()}")
                self._clear(broken)
            self.confirm()
            time.sleep(pause := min(pause * 2, 0.005))
        self.confirm()

    def is_named(self) -> bool:
        status = look(self.top, f"{self.path}/held")
        return status is not None and os.path.samestat(status, os.fstat(self.held))

    def confirm(self) -> None:
        if not self.is_named():
            raise FileNotFoundError(errno.ENOENT, "the lease was taken over", self.path)

    def _is_overdue(self, seen: dict[str, float], moment: float) -> bool:
        """Rule 3. A holder that has not declared itself, and a child with a dead one's lock, have a standard term."""
        holders = declarations(os.listdir(self.held))
        for name in holders or [str(os.fstat(self.held).st_ctime_ns)]:  # a change is another holder's first moment
            *process, since, term = holders.get(name) or [0, 0, 0, 0, 0]
            age, state = moment - seen.setdefault(name, moment), process_state(*process) if name in holders else "gone"
            limit = TERM if state == "gone" else min(term / 1000, 3600) if state == "unknown" else term / 1000
            is_past = state in ("running", "stopped") and uptime() / 1e6 - since >= term
            if age >= limit or is_past or state == "stopped" and age >= GRACE:
                return True
        return False

    def _clear(self, broken: str) -> None:
        while look(self.top, broken) and not attempt(os.rmdir, broken, dir_fd=self.top):
            for name in entries(self.top, broken):
                unlink(self.top, f"{broken}/{name}")

    def _begin(self) -> None:
        found = os.listdir(self.held)
        leftovers, is_clean = [name for name in found if name != "clean"], "clean" in found
        for name in [] if is_clean else entries(self.top, self.path):
            if name.startswith("broken-"):  # rule 5
                self._clear(f"{self.path}/{name}")
        self.declared = self.stage()
        if leftovers or not is_clean:
            self._settle()
            for name in leftovers:
                unlink(self.held, name)
            if not is_clean:
                os.close(create(self.held, "clean"))

    def _settle(self) -> None:
        """Publishes or undoes this value's part of a transaction that another process has left."""
        if not (note := read(self.top, f"{self.path}/transaction")):
            return
        number, part, kind = note[0].decode().split()
        base, content = f"own/transactions/{number}", f"own/transactions/{number}/{part}"
        is_committed = not unlink(self.top, f"{base}/open") and look(self.top, f"{base}/committed")
        if is_committed and look(self.top, content) and kind == "remove":
            self.remove("value.plist")
        elif is_committed and look(self.top, content) and kind == "replace":
            os.link(content, entry := self._entry(), src_dir_fd=self.top, dst_dir_fd=self.held)
            self.publish(entry, "value.plist")
        unlink(self.top, content)
        if entries(self.top, base) in ([], ["committed"]):
            unlink(self.top, f"{base}/committed")
            attempt(os.rmdir, base, dir_fd=self.top)
        self.remove("lease/transaction")

    def _entry(self) -> str:
        numbers = [*own_process(os.getpid()), uptime() // 1_000_000, int(self.term * 1000)]
        return "-".join(["x", *(f"{number:x}" for number in numbers), nonce()])

    def stage(self, content: bytes = b"", durable: bool = False) -> str:
        """Writes content through the lease's own descriptor (rule 2)."""
        os.close(create(self.held, entry := self._entry(), content, durable))
        return entry

    def publish(self, entry: str, name: str) -> None:
        while not attempt(rename, self.held, entry, f"../../{name}", EXCHANGE):  # rule 6
            with contextlib.suppress(FileExistsError):
                return rename(self.held, entry, f"../../{name}", NOREPLACE)
        unlink(self.held, entry)

    def remove(self, name: str) -> None:
        """Removes a file by a rename into the lease (rule 2)."""
        if not attempt(rename, self.held, f"../../{name}", entry := self._entry()):
            self.confirm()
        unlink(self.held, entry)

    def close(self) -> None:
        unlink(self.held, self.declared)
        os.close(self.held)  # rule 1: this releases it, and wakes the waiters


class Container:
    """A directory that the processes of one user share."""
    def __init__(self, path: str) -> None:
        self.path, action = os.path.abspath(path), "open the container"
        self._last: dict[tuple[str, str], int] = {}  # the order of the last entry of a queue's sender
        with reporting(action, self.path):
            self.top = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
            status = os.fstat(self.top)
            if status.st_uid != os.geteuid() or status.st_mode & 0o7077:
                raise WormholeError(action, self.path, "other users may use it", "chmod 0700 it")
            if not (found := read(self.top, "container.plist")):
                content = {"formatVersion": 2, "created": now()}
                os.close(create(self.top, staged := f".container-{nonce()}.plist", plistlib.dumps(content), True))
                attempt(rename, self.top, staged, "container.plist", NOREPLACE)
                unlink(self.top, staged)  # another process was faster
            elif (version := loads(found[0], self.path).get("formatVersion")) != 2:
                raise WormholeError(action, self.path, f"its format is {version}, not 2", "use a newer program")

    def read(self, name: str, kind: str = "values", file: str = "value.plist") -> Any:
        """The value; None if there is none."""
        place = f"{kind}/{encode(name)}"
        with reporting("read", path := f"{place}/{file}"):
            return None if (content := self._content(place, path)) is None else loads(content, path)

    def _content(self, place: str, path: str) -> bytes | None:
        while True:
            found = read(self.top, path)
            if found and not found[1].st_mode & 0o100:
                return found[0]
            note = read(self.top, f"{place}/lease/transaction")
            number, part, kind = note[0].decode().split() if note else ("", "", "keep")
            base = f"own/transactions/{number}"
            if kind != "keep" and look(self.top, f"{base}/committed") and (new := read(self.top, f"{base}/{part}")):
                found = new if kind == "replace" else None
            elif look(self.top, path) != (found and found[1]):
                continue
            content = found[0] if found else b""
            end = int.from_bytes(content[-8:], "big")  # the record of its publication has its expiry, or 0
            head = int.from_bytes(content[end - 16:end - 8], "big") if content[end - 8:end] == b"wormhole" else end
            expiry = int.from_bytes(content[head + 16:head + 24], "big") if head != end else 0
            return content if found and not 0 < expiry <= time.time_ns() else None

    def update(self, name: str, change: Callable[[Any], Any], timeout: float = WAIT, term: float = TERM) -> Any:
        """Replaces the value by what `change` returns; None removes it. After a takeover it is called again."""
        def body(lease: Lease) -> Any:
            value = change(self.read(name))
            lease.remove("value.plist") if value is None else lease.publish(lease.stage(dumps(value)), "value.plist")
            return value
        return self._change(f"values/{encode(name)}", body, timeout, term)

    def _change(self, place: str, body: Callable[[Lease], Any], timeout: float, term: float = TERM) -> Any:
        """Runs `body` under the lease; again if the lease was lost."""
        until = time.monotonic() + timeout
        while True:
            with reporting("change", place), contextlib.closing(Lease(self.top, place, until, term)) as lease:
                try:
                    return body(lease)
                except FileNotFoundError:
                    if lease.is_named():
                        raise

    def posts(self, name: str) -> set[str]:
        """What each post changes."""
        return {file for file in entries(self.top, f"notifications/{encode(name)}") if file.startswith("bell-")}

    def post(self, name: str) -> None:
        place = f"notifications/{encode(name)}"
        with reporting("post", place):
            while True:
                files, new = sorted(self.posts(name)), f"{place}/bell-{nonce()}"
                is_posted = bool(files) and attempt(rename, self.top, f"{place}/{files[0]}", new)
                for surplus in files[1:] if is_posted else []:  # of two first posts at once
                    unlink(self.top, f"{place}/{surplus}")
                if is_posted or files and self.posts(name):  # another's post, during this one, counts for both
                    return
                make(self.top, place)
                with ABSENT:
                    return os.close(create(self.top, new))

    def wait(self, name: str, known: set[str], timeout: float = WAIT) -> bool:
        """Whether there was a post since `posts` returned `known`."""
        until = time.monotonic() + timeout
        while not (is_posted := not self.posts(name) <= known) and time.monotonic() < until:
            time.sleep(0.005)
        return is_posted

    def append(self, name: str, message: Any, timeout: float = WAIT) -> int:
        """Appends a message, and returns its number."""
        def body(lease: Lease) -> int:
            state = self.read(name, "logs", "log.plist")
            state = state or {"id": nonce(), "first": 1, "head": 0, "bytes": 0, "oldest": 0, "boots": []}
            end, is_known = self._end(place, state["head"]), BOOT in [boot["id"] for boot in state["boots"]]
            if end >= state["head"] + 1024 or not is_known:  # so that others find the end soon
                new = range(state["head"] + 1, end + 1)
                sizes = (look(self.top, f"{place}/entries/{number:016x}.plist") for number in new)
                state |= {"head": end, "bytes": state["bytes"] + sum(size.st_size for size in sizes if size)}
                state["boots"] = [*state["boots"], *([] if is_known else [{"id": BOOT, "first": end + 1}])][-64:]
                lease.publish(lease.stage(dumps(state), True), "log.plist")
            make(self.top, f"{place}/entries")
            rename(lease.held, lease.stage(dumps(message)), f"../../entries/{end + 1:016x}.plist", NOREPLACE)
            return end + 1
        place = f"logs/{encode(name)}"
        return self._change(place, body, timeout)

    def _end(self, place: str, head: int) -> int:
        step = 1  # and then twice as much, until there is no message
        while look(self.top, f"{place}/entries/{head + step:016x}.plist"):
            head, step = head + step, step * 2
        while step := step // 2:
            head += step if look(self.top, f"{place}/entries/{head + step:016x}.plist") else 0
        return head

    def messages(self, name: str, first: int = 1) -> Iterator[tuple[int, Any]]:
        """The messages from a number on, with their numbers."""
        place, state = f"logs/{encode(name)}", self.read(name, "logs", "log.plist") or {"first": 1, "head": 0}
        for number in range(max(first, state["first"]), self._end(place, state["head"]) + 1):
            if found := read(self.top, path := f"{place}/entries/{number:016x}.plist"):
                yield number, loads(found[0], path)

    def send(self, queue: str, sender: str, *payloads: Any) -> None:
        """Stores up to 512 entries in one step. Those of one sender are delivered in their order."""
        content, place = dumps({"entries": [{"payload": payload} for payload in payloads]}), f"queues/{encode(queue)}"
        with reporting("send to", place):
            last = self._last.get((place, sender)) or self._last_order(place, encode(sender))
            while True:
                self._last[place, sender] = last = max(time.time_ns(), last + 1)
                name = f"{last:016x}-{encode(sender)}-{len(payloads)}-{len(content)}.plist"
                with ABSENT, open(create(self.top, staged := f"{place}/staged/{nonce()}", content), "wb"):
                    if attempt(rename, self.top, staged, f"{place}/pending/{name}", NOREPLACE):
                        return
                    unlink(self.top, staged)
                self.make_parts(place)

    def _last_order(self, place: str, sender: str) -> int:
        parts = ["pending", "sent", "outcomes", *(f"taken/{one}" for one in entries(self.top, f"{place}/taken"))]
        names = [one.partition(".")[0] + ".plist" for part in parts for one in entries(self.top, f"{place}/{part}")]
        return max((int(batch[1], 16) for batch in batches(names) if batch[2] == sender), default=0)

    def make_parts(self, place: str) -> None:
        for part in ("staged", "pending", "outcomes"):
            make(self.top, f"{place}/{part}")
        if not look(self.top, f"{place}/taken"):  # it always has a directory
            make(self.top, f"{(staged := f'{place}/staged/{nonce()}')}/free")
            attempt(rename, self.top, staged, f"{place}/taken", NOREPLACE)

def batches(names: list[str]) -> list[re.Match]:
    """Parses the names of batches, and sorts them in the order of delivery."""
    found = filter(None, map(BATCH.fullmatch, names))
    return sorted(found, key=lambda name: (name[5] or name[1], name[1], name[2], int(name[4] or 0)))


class Entry(NamedTuple):
    """An entry that a worker has taken. It stays the worker's until it is acknowledged."""
    payload: Any
    sender: str
    is_redelivery: bool
    path: str  # of its batch
    index: int
    due: float  # in seconds since 1970
    is_counted: bool  # its delivery has a line


class Worker:
    """One of any number of processes that take the entries of a queue."""
    def __init__(self, container: Container, queue: str, timeout: float = WAIT) -> None:
        self.container, self.top, self.queue = container, container.top, f"queues/{encode(queue)}"
        self.name, self.members, self.taken = queue, f"consumers/{encode(queue)}", f"{self.queue}/taken"
        self.stopped, self.ready, self.due, until = {}, [], 0.0, time.monotonic() + timeout
        self.left: dict[str, set[int]] = {}  # what is not settled of each batch
        with reporting("join", self.queue):
            while not self._join():
                if time.monotonic() >= until:
                    who = f"process {int(self._holder().partition('-')[0] or '0', 16)}"
                    raise TimedOut("join", self.queue, f"{who} has it alone", "wait longer, or end that process")
                time.sleep(0.01)

    def _join(self) -> bool:
        """Becomes present, unless a consumer has the queue alone."""
        if self._holder():
            return False
        make(self.top, self.members)
        self.id, (pid, start, namespace) = f"{os.getpid():x}-{nonce()}", own_process(os.getpid())
        self.own, self.record = f"{self.taken}/worker-{self.id}", {
            "id": self.id, "pid": pid, "started": start, "namespace": namespace, "boot": BOOT,
            "program": "python", "since": now(), "uptime": uptime(), "exclusive": False,
            "directory": os.stat(self.members, dir_fd=self.top).st_ino}
        self.file = create(self.top, self._member("entering", self.id), dumps(self.record))  # locked while present
        rename(self.top, self._member("entering", self.id), self._member("member", self.id))
        self.container.make_parts(self.queue)
        os.mkdir(self.own, 0o700, dir_fd=self.top)
        for name in entries(self.top, self.taken):  # those that look after their neighbour find this one
            attempt(os.utime, f"{self.taken}/{name}", dir_fd=self.top)
        return not self._holder() or self.close()

    def close(self) -> None:
        """Leaves. Others take over what is not acknowledged."""
        if len(entries(self.top, self.taken)) > 1:
            attempt(os.rmdir, self.own, dir_fd=self.top)
        with open(create(self.top, self._member("entering", self.id), dumps({**self.record, "ended": now()})), "wb"):
            rename(self.top, self._member("entering", self.id), f"{self.members}/last.plist")
        unlink(self.top, self._member("member", self.id))
        os.close(self.file)

    def _member(self, kind: str, id: str) -> str:
        return f"{self.members}/{kind}-{id}.plist"

    def _holder(self) -> str:
        """The registration of a consumer that has the queue alone; empty if there is none."""
        id = (self.container.read(self.name, "consumers", "exclusive.plist") or {}).get("id", "")
        return id if id and self._state(id, True) else ""

    def _state(self, id: str, is_exclusive: bool = False) -> str:
        """The state of the process of a registration; empty if it is not present."""
        for kind in ("member", "entering", "member"):
            with ABSENT, open(open_beneath(self.top, self._member(kind, id)), "rb") as file:
                if attempt(fcntl.flock, file, fcntl.LOCK_SH | fcntl.LOCK_NB):
                    continue
                record, here = loads(file.read(), self.members), os.stat(self.members, dir_fd=self.top).st_ino
                if record["directory"] == here and record["exclusive"] >= is_exclusive:
                    state = process_state(record["pid"], record["started"], record["namespace"])
                    return "running" if state == "stopped" and has_children(record["pid"]) else state
        return ""

    def _look_around(self) -> None:
        """Takes over what dead workers had, and those that have been stopped for the grace."""
        moment, stopped, self.stopped = time.monotonic(), self.stopped, {}
        for name in entries(self.top, self.taken):
            id = name.removeprefix("worker-").partition(".")[0] if name.startswith("worker-") else self._holder()
            state = "" if name.startswith("free") else self._state(id)
            if state == "stopped":
                self.stopped[name] = stopped.get(name, moment)
            is_over = not state or state == "stopped" and moment - self.stopped[name] >= GRACE
            if id == self.id or not is_over or attempt(os.rmdir, f"{self.taken}/{name}", dir_fd=self.top):
                continue
            if attempt(rename, self.top, f"{self.taken}/{name}", directory := f"{self.own}.{uptime()}"):
                found = {batch[0]: batch for batch in batches(entries(self.top, directory))}
                for batch in found.values():  # a part beside its batch means nothing
                    if not batch[4] or batch[0].replace(f"+{batch[4]}.", ".") not in found:
                        self._open(directory, batch, True)
                attempt(os.rmdir, directory, dir_fd=self.top)
        self.due = moment + (GRACE if self.stopped else 1)

    def next(self, timeout: float = WAIT) -> Entry | None:
        """The next entry; None once the time is over."""
        until = time.monotonic() + timeout
        with reporting("take from", self.queue):
            while True:
                if not look(self.top, self.own):
                    raise Lost("take from", self.queue, "others took over what this worker had", "join again")
                if time.monotonic() >= self.due:
                    self._look_around()
                for entry in self._due() or self._fetch():
                    self.ready.remove(entry)
                    if entry.is_counted:
                        self._add_line(f"{entry.path}.deliveries", entry.index)
                    return entry
                if time.monotonic() >= until:
                    return None
                time.sleep(0.005)

    def _due(self) -> list[Entry]:
        return [entry for entry in self.ready if entry.due <= time.time()]

    def _fetch(self) -> list[Entry]:
        """Takes the next batch that waits, and has an entry to deliver."""
        listed = [batches(entries(self.top, f"{self.queue}/pending")) for _ in range(2)]  # one is not a snapshot
        newest = {batch[2]: batch[1] for batch in sorted(listed[0], key=lambda batch: batch[1])}
        for batch in listed[1]:
            if batch[1] <= newest.get(batch[2], "") and int(batch[5] or "0", 16) <= time.time_ns():
                if attempt(rename, self.top, f"{self.queue}/pending/{batch[0]}", f"{self.own}/{batch[0]}"):
                    self._open(self.own, batch, False)
                    if self._due():
                        break
        return self._due()

    def _open(self, directory: str, batch: re.Match, is_again: bool) -> None:
        """Reads a batch that this worker has taken. One that it cannot read stays there for others."""
        path, whole = f"{directory}/{batch[0]}", batch[0].replace(f"+{batch[4]}.", ".")
        indices = {int(batch[4])} if batch[4] else set(range(int(batch[3])))
        done, log = ((read(self.top, path + end) or [b""])[0].decode().splitlines() for end in (".done", ".deliveries"))
        self.left[path] = indices - set(map(int, done))
        listed = loads(read(self.top, path)[0], path)["entries"]
        for index in sorted(self.left[path]):
            one, lines = listed[index], [line.split(" ", 3) for line in log if line.split(" ")[0] == str(index)]
            due = int(lines[-1][2]) / 1000 if lines and len(lines[-1]) > 2 else 0
            again, ns = is_again and len(indices) == 1 or bool(lines), own_process(os.getpid())[2]
            sender, is_counted, note = urllib.parse.unquote(batch[2]), again or len(indices) > 1, f"{whole}.{index}"
            entry = Entry(one.get("payload"), sender, again, path, index, due, is_counted)
            is_late = "expires" in one and (one["uptime"] <= uptime() if one["namespace"] == ns else
                                            one["expires"] <= now())
            ends = [end for end in ("cancelled", "superseded") if one.get(end)] + ["expired"] * is_late + \
                ["failed"] * (look(self.top, f"{self.queue}/failed/{note}") is not None)
            if ends:
                self._note(entry, f"{self.queue}/outcomes/{note}", ends[0])
            if look(self.top, f"{self.queue}/outcomes/{note}"):
                self.acknowledge(entry)
            else:
                self.ready.append(entry)

    def _note(self, entry: Entry, note: str, outcome: str) -> None:
        """Records how an entry ended; the first note is final, and goes through this worker's directory."""
        passing = f"{os.path.dirname(entry.path)}/outcome-{nonce()}"
        os.close(create(self.top, passing, dumps({"outcome": outcome})))
        if not attempt(rename, self.top, passing, note, NOREPLACE):
            unlink(self.top, passing)

    def acknowledge(self, entry: Entry) -> None:
        with reporting("acknowledge", entry.path):
            left = self.left[entry.path] - {entry.index}
            if not (self._add_line(f"{entry.path}.done", entry.index) if left else unlink(self.top, entry.path)):
                raise Lost("acknowledge", entry.path, "others took it over", "join again; it is delivered again")
            self.left[entry.path] = left
            for end in [] if left else [".done", ".deliveries"]:
                unlink(self.top, entry.path + end)
            if not left and not entry.path.startswith(self.own + "/"):
                attempt(os.rmdir, os.path.dirname(entry.path), dir_fd=self.top)

    def _add_line(self, path: str, index: int) -> bool:
        with ABSENT, open(os.open(path, ADD, 0o600, dir_fd=self.top), "wb") as file:
            return file.write(f"{index}\n".encode()) > 0
        return False
