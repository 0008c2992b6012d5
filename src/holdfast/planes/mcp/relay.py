"""The relay, which an MCP client starts instead of a stdio server. It decides nothing.

It starts the real server and sends every line through the harness, whose address is in HOLDFAST_MCP; without an address
it becomes the server. It runs as a single file and needs only the standard library, so it starts fast. That is why no
part of it is in another module.

    relay [--name NAME] -- server args...

Lines to the harness are marked by their writer: `C` the client, `S` the server. `E` is the end of the client's input,
`G` says that the client no longer reads and how many lines its pipe accepted, `X` has the server's exit code and its
program, or why it could not be started. Lines from the harness: `C` and `S` name the receiver, `E` closes the server's
input, `K` kills the server with a signal.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import sys
import time
from binascii import b2a_base64

VARIABLE = "HOLDFAST_MCP"
LINE_LIMIT = 64_000_000
"""Limit for one message, and for data that waits for a client or server that does not read, in bytes."""
_AHEAD = 1_000_000
"""Bytes that may wait for the harness before the relay stops reading."""
_CHUNK = 262_144
_ATOMIC = 4096
"""A writable pipe accepts this many bytes without blocking. The relay must not change the mode of the client's
pipes."""
_GRACE_S, _KILL_S = 1.0, 2.0
"""Time for a server to exit after its input has ended, and again after SIGTERM."""
_CONNECT_S = 10.0
_BROKEN = select.POLLERR | select.POLLHUP | select.POLLNVAL
_ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
LOST, UNUSABLE = 3, 127


def main(argv: list[str] | None = None) -> int:
    """Run until the server or the client has ended; return the server's exit code."""
    name, command = parse_arguments(sys.argv[1:] if argv is None else argv)
    if not command:
        return _print_error("no server: holdfast mcp-proxy [--name NAME] -- server args...", 4)
    address = os.environ.get(VARIABLE)
    if not address:
        return _exec_server(command)
    name = name or os.path.basename(command[0])
    try:
        harness, rest = connect(address, name)
    except (OSError, ValueError) as refused:
        return _print_error(f"{name}: {refused}", LOST)
    try:
        relay = Relay(name, harness, rest, command)
    except OSError as failed:
        why = f"{command[0]} cannot be started: {failed.strerror}"
        harness.setblocking(True)
        harness.sendall(b"X%d %b\n" % (UNUSABLE, _to_one_line(why)))
        harness.close()
        return _print_error(f"{name}: {why}", UNUSABLE)
    return relay.run()


def parse_arguments(argv: list[str]) -> tuple[str, list[str]]:
    """Return the server's name and its command. The `--` may be left out."""
    name = ""
    while argv and argv[0].startswith("--name"):
        _, equals, value = argv[0].partition("=")
        name, argv = (value, argv[1:]) if equals else ("".join(argv[1:2]), argv[2:])
    return name, argv[1:] if argv[:1] == ["--"] else argv


def connect(address: str, name: str) -> tuple[socket.socket, bytes]:
    """Connect to the harness for this server; return the connection and the bytes after the greeting."""
    credentials, _, place = address.rpartition("@")
    host, _, port = place.strip("/").rpartition(":")
    token = credentials.rpartition("//")[2]
    connection = socket.create_connection((host, int(port)), timeout=_CONNECT_S)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    basic = b2a_base64(token.encode(), newline=False).decode()
    target = f"holdfast.mcp:{_quote_name(name)}"
    connection.sendall(
        f"CONNECT {target} HTTP/1.1\r\nhost: {target}\r\nproxy-authorization: Basic {basic}\r\n\r\n".encode()
    )
    head = b""
    while b"\r\n\r\n" not in head:
        more = connection.recv(65536)
        if not more or len(head) > 65536:
            raise ValueError("Holdfast closed the connection")
        head += more
    greeting, _, rest = head.partition(b"\r\n\r\n")
    status = greeting.split(None, 2)[1:2]
    if status != [b"200"]:
        line = b"".join(status).decode("ascii", "replace")
        raise ValueError(f"Holdfast refused it ({line}): no trial is running")
    return connection, rest


class Relay:
    """One server process and its client, with the harness between them."""

    def __init__(self, name: str, harness: socket.socket, rest: bytes, command: list[str]) -> None:
        self._name = name
        self._program = _to_one_line(command[0])
        self._harness = harness
        harness.setblocking(False)
        self._line = harness.fileno()
        self._wake = self._listen_to_signals()
        self.pid, self._stdin, self._stdout = _start_server(command)
        self._code: int | None = None
        self._is_end_reported = False
        """Whether the harness knows that the server has ended."""
        self._signal = 0
        self._failure = ""
        self._deadline: float | None = None
        """When the relay forcibly ends what is slow to end."""
        self._closing_stdin = False
        self._for_client = 0
        """Number of lines meant for the client."""
        self._unread = False
        """Whether the harness knows that the client no longer reads."""
        self._partial = {0: bytearray(), self._stdout: bytearray(), self._line: bytearray(rest)}
        self._marks = {0: b"C", self._stdout: b"S"}
        self._out = {1: bytearray(), self._stdin: bytearray(), self._line: bytearray()}
        self._reading = [0, self._stdout, self._line]

    def run(self) -> int:
        """Relay until nothing is left; return the exit code."""
        self._execute(_split_lines(self._partial[self._line], b""))
        while self._line in self._reading and not self._signal and not self._failure:
            self._handle_events()
            if self._code is not None and self._stdout not in self._reading and not self._is_end_reported:
                self._is_end_reported = True
                self._send(self._line, b"X%d %b\n" % (self._code, self._program))
        while self._is_end_reported and self._out[1] and self._deadline is not None and not self._signal:
            self._handle_events()  # the client reads the last output slowly
        self._end_server()
        if self._signal:
            return 128 + self._signal
        if self._failure or not (self._is_end_reported or 0 not in self._reading):
            return _print_error(
                f"{self._name}: {self._failure or 'Holdfast closed the connection; the trial is over'}", LOST
            )
        code = self._code or 0
        return code if code >= 0 else 128 - code

    def _handle_events(self) -> None:
        """Wait for the next event and handle it."""
        poll = select.poll()
        if not self._unread:
            poll.register(1, 0)  # first, because its end must be reported before the data that came with it
        poll.register(self._wake, select.POLLIN)
        wanted = self._list_readable()
        for fd in {*wanted, *[fd for fd, waiting in self._out.items() if waiting]}:
            poll.register(fd, (select.POLLIN if fd in wanted else 0) | (select.POLLOUT if self._out.get(fd) else 0))
        left = None if self._deadline is None else max(0.0, self._deadline - time.monotonic()) * 1000 + 1
        for fd, event in poll.poll(left):
            if fd == self._wake:
                _drain(self._wake)
                self._reap()
                continue
            if fd == 1 and event & _BROKEN:
                self._report_unread()
            if self._out.get(fd) and event & (select.POLLOUT | _BROKEN):
                self._flush(fd)
            if fd in self._reading and event & (select.POLLIN | select.POLLHUP | select.POLLERR):
                self._read(fd)
        if self._deadline is not None and time.monotonic() >= self._deadline:
            self._handle_timeout()

    def _list_readable(self) -> list[int]:
        """Return the sources to read from: none whose lines could not be passed on."""
        # Back pressure: stop reading from the client and the server while the harness is behind, and from the harness
        # while a pipe is full. Otherwise one slow reader would fill the memory of the relay.
        full = len(self._out[self._line]) > _AHEAD
        stuck = any(len(self._out.get(fd, b"")) > LINE_LIMIT for fd in (1, self._stdin))
        return [fd for fd in self._reading if not (stuck if fd == self._line else full)]

    def _read(self, fd: int) -> None:
        try:
            data = os.read(fd, _CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._handle_end(fd)
            return
        # Whole lines only: the harness answers line by line, and half a message must not be taken for one.
        lines = _split_lines(self._partial[fd], data)
        if len(self._partial[fd]) > 2 * LINE_LIMIT:
            self._failure = f"a message of more than {2 * LINE_LIMIT} bytes"
        if fd == self._line:
            self._execute(lines)
        else:
            self._send(self._line, b"".join([self._marks[fd] + line + b"\n" for line in lines if line.strip()]))

    def _handle_end(self, fd: int) -> None:
        """Handle the end of the client's, the server's or the harness's output."""
        self._reading.remove(fd)
        if fd in self._marks and self._partial[fd].strip():
            self._send(self._line, self._marks[fd] + self._partial[fd] + b"\n")
        if fd == 0:
            self._send(self._line, b"E\n")
        if fd != self._line:
            self._set_deadline(_GRACE_S)

    def _execute(self, lines: list[bytes]) -> None:
        """Execute a command from the harness."""
        for line in lines:
            mark, rest = line[:1], line[1:]
            if mark == b"C":
                self._for_client += 1
                self._send(1, rest + b"\n")
            elif mark == b"S":
                self._send(self._stdin, rest + b"\n")
            elif mark == b"E":
                self._closing_stdin = True
                self._flush(self._stdin)
            elif mark == b"K":
                self._crash(int(rest))

    def _crash(self, number: int) -> None:
        """Kill the server and close its pipes, which the client notices immediately."""
        if self._code is None:
            os.kill(self.pid, number)
        # The client must see a server that died, so its pipes close now, not when this process exits. Descriptors 0 and
        # 1 stay open on /dev/null, because a later open() could otherwise reuse their numbers.
        nothing = os.open(os.devnull, os.O_RDWR)
        os.dup2(nothing, 0)
        os.dup2(nothing, 1)
        self._out[1].clear()
        self._reading = [self._line]
        self._set_deadline(_KILL_S)

    def _send(self, fd: int, data: bytes) -> None:
        if data and fd in self._out:
            self._out[fd] += data
            self._flush(fd)

    def _flush(self, fd: int) -> None:
        """Write as much as possible without waiting."""
        waiting = self._out.get(fd)
        if waiting is None:
            return
        try:
            while waiting and (fd != 1 or _is_writable(fd)):
                # Descriptor 1 is the client's pipe and stays in blocking mode. A write of at most PIPE_BUF bytes to a
                # writable pipe does not block.
                del waiting[: os.write(fd, waiting[:_ATOMIC] if fd == 1 else waiting[:_CHUNK])]
        except BlockingIOError:
            return
        except OSError:  # the other side no longer reads
            if fd == 1:
                self._report_unread()
            waiting.clear()
            gone = 0 if fd == 1 else fd
            if gone in self._reading:
                self._handle_end(gone)
        if fd == self._stdin and self._closing_stdin and not waiting:
            del self._out[fd]
            os.close(fd)

    def _report_unread(self) -> None:
        """Report to the harness, once, that the client has closed its end of the pipe."""
        if not self._unread:
            self._unread = True
            self._send(self._line, b"G%d\n" % (self._for_client - self._out[1].count(b"\n")))

    def _listen_to_signals(self) -> int:
        """Return a pipe that becomes readable when a signal arrives."""
        wake, waker = os.pipe()
        os.set_blocking(wake, False)
        os.set_blocking(waker, False)
        signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
        for number in (signal.SIGCHLD, *_ENDING):
            signal.signal(number, self._handle_signal)
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)
        return wake

    def _handle_signal(self, number: int, frame: object) -> None:
        if number != signal.SIGCHLD:
            self._signal = number

    def _set_deadline(self, seconds: float) -> None:
        if self._deadline is None:
            self._deadline = time.monotonic() + seconds

    def _reap(self) -> None:
        """Record the server's exit. Its last output is still in the pipe, which other processes may hold open."""
        if self._code is not None:
            return
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        if pid:
            self._code = os.waitstatus_to_exitcode(status)
            self._deadline = time.monotonic() + _GRACE_S

    def _handle_timeout(self) -> None:
        """Handle a time limit that has passed: for the server to exit, or for its last output to be read."""
        self._deadline = None
        if self._is_end_reported:
            self._reading = []
            return
        self._end_server()
        self._reading = [fd for fd in self._reading if fd != self._stdout]
        self._set_deadline(_GRACE_S)

    def _end_server(self) -> None:
        """End the server: with SIGTERM first, then with SIGKILL."""
        if self._code is None:
            os.kill(self.pid, signal.SIGTERM)
        until = time.monotonic() + _KILL_S
        while self._code is None:
            if time.monotonic() > until:
                os.kill(self.pid, signal.SIGKILL)
            time.sleep(0.005)
            self._reap()


def _start_server(command: list[str]) -> tuple[int, int, int]:
    """Return the server's process, its input and its output. It inherits the relay's stderr."""
    their_in, our_out = os.pipe()
    our_in, their_out = os.pipe()
    actions = [(os.POSIX_SPAWN_DUP2, their_in, 0), (os.POSIX_SPAWN_DUP2, their_out, 1)]
    usual = (signal.SIGPIPE, signal.SIGCHLD, *_ENDING)
    pid = os.posix_spawnp(command[0], command, os.environ, file_actions=actions, setsigdef=usual)
    os.close(their_in)
    os.close(their_out)
    os.set_blocking(our_out, False)
    return pid, our_out, our_in


def _exec_server(command: list[str]) -> int:
    """Replace this process with the server, because there is no harness."""
    try:
        os.execvp(command[0], command)  # noqa: S606 - the command is what the client was told to start
    except OSError as failed:
        return _print_error(f"{command[0]} cannot be started: {failed.strerror}", UNUSABLE)


def _split_lines(partial: bytearray, data: bytes) -> list[bytes]:
    """Return the lines that are complete now; the rest stays in `partial`."""
    if data and b"\n" not in data:
        partial += data
        return []
    lines = (bytes(partial) + data).split(b"\n")
    partial[:] = lines.pop()
    return lines


def _is_writable(fd: int) -> bool:
    poll = select.poll()
    poll.register(fd, select.POLLOUT)
    return bool(poll.poll(0))


def _drain(fd: int) -> None:
    try:
        while os.read(fd, 4096):
            pass
    except BlockingIOError:
        return


def _quote_name(name: str) -> str:
    """URL-encode a text: everything except letters, digits, dashes, dots and underscores becomes %XX."""
    plain = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._"
    return "".join([chr(byte) if byte in plain else f"%{byte:02X}" for byte in name.encode("utf-8", "surrogateescape")])


def _to_one_line(text: str) -> bytes:
    return " ".join(text.split()).encode("utf-8", "replace")


def _print_error(words: str, code: int) -> int:
    sys.stderr.write(f"holdfast mcp-proxy: {words}\n")
    return code


if __name__ == "__main__":
    sys.exit(main())
