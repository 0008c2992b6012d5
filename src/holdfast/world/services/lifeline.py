"""Ends containers when we are gone: the engine would keep them."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess

from holdfast.processes.leftovers import kill_group

KEEPER = "holdfast.keeper"
"""The label of the containers that one line holds."""
_SCRIPT = """read -r word
left=$(docker ps --all --quiet --filter "label=$1")
[ -z "$left" ] || docker rm --force --volumes $left"""


class Lifeline:
    """A shell that waits for our end and then removes every container of its label. Close it after use.

    It waits for the end of a pipe. A client that is about to start a container holds the pipe, too, so that nothing
    begins after the shell has looked.
    """

    def __init__(self) -> None:
        self.label = f"{KEEPER}={secrets.token_hex(8)}"
        read, self.fd = os.pipe()
        try:
            self._shell = subprocess.Popen(  # noqa: S603
                ["/bin/sh", "-c", _SCRIPT, "sh", self.label],
                stdin=read,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                start_new_session=True,
            )
        except OSError:
            os.close(self.fd)
            raise
        finally:
            os.close(read)

    def close(self) -> None:
        """Every container is gone; so is the shell."""
        kill_group(self._shell.pid, signal.SIGKILL)
        self._shell.wait()
        os.close(self.fd)
