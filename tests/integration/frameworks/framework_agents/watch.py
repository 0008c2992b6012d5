"""Loaded by every Python of the agent's: writes down whom it looks for outside this machine."""

import os
import sys


def watch(event, arguments):
    if event == "socket.connect":
        address = arguments[1]
        if isinstance(address, tuple) and address[0] not in ("127.0.0.1", "::1"):
            with open(os.environ["WATCHED"], "a") as log:
                log.write(f"{address}\n")
    if event == "socket.getaddrinfo" and arguments[0] not in ("127.0.0.1", "localhost"):
        with open(os.environ["WATCHED"], "a") as log:
            log.write(f"{arguments[0]}\n")


sys.addaudithook(watch)
