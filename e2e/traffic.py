"""traffic.py send|receive QUEUE: a client that notes every message with its own clock.

Runs in a pod with the broker's image; LOCKKEEPER_URL, LOCKKEEPER_USER and LOCKKEEPER_PASSWORD say
where to. Each line that it prints is a JSON object: `n` is the message's number, `at` the time in
seconds when its sending was confirmed, or when it was received. It ends when the
file /tmp/end is there.
"""

import json
import os
import sys
import time
from pathlib import Path

from lockkeeper.client import Connection, MessagingError, connect

PAUSE_SECONDS = 0.01
"""Between two messages: what can be seen of a gap."""
RECEIVE_SECONDS = 1.0
END = Path("/tmp/end")


def say(**values: object) -> None:
    """Print one line at once."""
    print(json.dumps({**values, "at": time.time()}), flush=True)


def connected() -> Connection:
    """Return a connection, as soon as there is one."""
    user, password = os.environ.get("LOCKKEEPER_USER"), os.environ.get("LOCKKEEPER_PASSWORD")
    while True:
        try:
            return connect(os.environ["LOCKKEEPER_URL"], user=user, password=password)
        except MessagingError as error:
            say(error=str(error))
            time.sleep(PAUSE_SECONDS)


def send(queue: str) -> None:
    """Send numbers; one whose sending fails is sent again, and may thus come twice."""
    number = 0
    while not END.exists():
        with connected() as connection:
            producer = connection.session().producer(queue)
            try:
                while not END.exists():
                    producer.send(str(number))
                    say(n=number)
                    number += 1
                    time.sleep(PAUSE_SECONDS)
            except MessagingError as error:
                say(error=str(error))


def receive(queue: str) -> None:
    """Receive numbers, each acknowledged before the next."""
    while not END.exists():
        with connected() as connection:
            consumer = connection.session().consumer(queue)
            try:
                while not END.exists():
                    message = consumer.receive(RECEIVE_SECONDS)
                    if message is not None:
                        say(n=int(str(message.body)))
            except MessagingError as error:
                say(error=str(error))


if __name__ == "__main__":
    {"send": send, "receive": receive}[sys.argv[1]](sys.argv[2])
