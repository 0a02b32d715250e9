#!/usr/bin/env python3
"""Executes a test's commands on a container, one per line, and answers each with one line.

    participant.py CONTAINER [--break RULE]

RULE is left out: "rule2" (publish through the lease's own descriptor) or "marks" (say what is delivered again).

The verbs are those of the participant in Swift (Tests/Support/WormholeParticipant) that a second implementation
has, and two more:

    read KEY                         the value, or "nil"
    add KEY NUMBER                   updates: adds to the number
    text KEY LENGTH                  replaces with a string of LENGTH characters
    remove KEY                       removes
    hold KEY NUMBER                  updates; in the middle answers "holding" and reads a line before it adds the number
    post NAME                        posts a notification
    queue-send NAME SENDER FIRST COUNT LOG   sends numbers; notes each in the log once it is stored
    queue-join NAME                  becomes a worker
    queue-next NAME [SECONDS]        takes an entry and keeps it; answers "SENDER NUMBER [again]"
    queue-acknowledge NAME           acknowledges the last taken entry
    queue-share NAME LOG [SECONDS]   works: notes each entry in the log and then acknowledges it, until none has come
                                     for SECONDS; notes "acknowledged SENDER NUMBER", too
    log-append NAME FIRST COUNT LOG  appends numbers; notes each once it is appended
    hear NAME SECONDS                answers "listening", and then "heard", or "nothing"
    messages NAME LOG                notes each message of a log: its number and its payload

Errors are answered as "error SENTENCE".
"""

from __future__ import annotations

import contextlib
import os
import random
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "Fixtures", "Python"))
sys.dont_write_bytecode = True
from wormhole import EXCHANGE, Container, Entry, Lease, Lost, Worker, WormholeError, create, rename


broken = sys.argv[3] if len(sys.argv) > 3 else ""
workers: dict[str, Worker] = {}
taken: dict[str, Entry] = {}


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def note(line: str, path: str) -> None:
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.write(file, (line + "\n").encode())
    os.close(file)


def hold(container: Container, key: str, number: int) -> None:
    def change(value: int | None) -> int:
        say("holding")
        sys.stdin.readline()
        return (value or 0) + number
    container.update(key, change)


def description(entry: Entry) -> str:
    return f"{entry.sender} {entry.payload}" + (" again" if entry.is_redelivery and broken != "marks" else "")


def share(container: Container, queue: str, path: str, patience: float) -> None:
    while True:  # until it was not replaced
        with contextlib.suppress(Lost), contextlib.closing(Worker(container, queue)) as worker:
            while entry := worker.next(patience):
                note(description(entry), path)
                time.sleep(random.uniform(0, 0.002))  # where a kill has the entry delivered again
                worker.acknowledge(entry)
                note(f"acknowledged {entry.sender} {entry.payload}", path)
            return


def answer(container: Container, verb: str, key: str, *rest: str) -> str:
    if verb == "read":
        value = container.read(key)
        return "nil" if value is None else str(value)
    if verb == "add":
        container.update(key, lambda value: (value or 0) + int(rest[0]))
    elif verb == "text":
        container.update(key, lambda _: "x" * int(rest[0]))
    elif verb == "remove":
        container.update(key, lambda _: None)
    elif verb == "hold":
        hold(container, key, int(rest[0]))
    elif verb == "post":
        container.post(key)
    elif verb == "queue-send":
        for number in range(int(rest[1]), int(rest[1]) + int(rest[2])):
            container.send(key, rest[0], number)
            note(str(number), rest[3])
    elif verb == "queue-join":
        workers[key] = Worker(container, key)
    elif verb == "queue-next":
        if not (entry := workers[key].next(float(rest[0]) if rest else 0)):
            return "nothing"
        taken[key] = entry
        return description(entry)
    elif verb == "queue-acknowledge":
        workers[key].acknowledge(taken[key])
    elif verb == "queue-share":
        share(container, key, rest[0], float(rest[1]) if len(rest) > 1 else 0)
    elif verb == "log-append":
        for number in range(int(rest[0]), int(rest[0]) + int(rest[1])):
            container.append(key, number)
            note(str(number), rest[2])
    elif verb == "hear":
        known = container.posts(key)
        say("listening")
        return "heard" if container.wait(key, known, float(rest[0])) else "nothing"
    elif verb == "messages":
        for number, payload in container.messages(key):
            note(f"{number} {payload}", rest[0])
    else:
        return "error usage"
    return "done"


def break_rule_2() -> None:
    """Lets a holder publish by paths: into and out of the lease of its successor, if it was taken over."""
    def stage(lease: Lease, content: bytes = b"", durable: bool = False) -> str:
        os.close(create(lease.top, f"{lease.path}/held/{(entry := lease._entry())}", content, durable))
        return entry

    def publish(lease: Lease, entry: str, name: str) -> None:
        rename(lease.top, f"{lease.path}/held/{entry}", f"{os.path.dirname(lease.path)}/{name}")

    Lease.stage, Lease.publish = stage, publish


def main() -> None:
    if broken == "rule2":
        break_rule_2()
    container = Container(sys.argv[1])
    while (line := sys.stdin.readline()) and line != "exit\n":
        try:
            say(answer(container, *line.split()))
        except WormholeError as error:
            say(f"error {error}")


main()
