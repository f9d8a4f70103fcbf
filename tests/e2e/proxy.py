"""A TCP proxy before Redis: stops the flow, cuts the line, acts at an exact byte."""

import re
import socket
import struct
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Literal

When = Literal["before", "half", "replied", "passed"]
"""When to act on a command: before anything of it is forwarded, after half of it, when
the reply has come but is not passed on, or right after it was passed on.
"""

_RESET = struct.pack("ii", 1, 0)


class Rule:
    """Something to do once, at an exact moment of the first command that matches."""

    def __init__(self, pattern: bytes, when: When, action: Callable[[], None]) -> None:
        self.pattern = re.compile(pattern, re.DOTALL)
        self.when = when
        self.done = threading.Event()
        self._action = action

    def act(self) -> None:
        """Do it."""
        self._action()
        self.done.set()


def take_command(buffer: bytearray) -> bytes:
    """Remove the first whole command from the buffer; b"" while there is none.

    A command is an array of strings: ``*2``, then ``$3``, ``GET`` and so on.
    """
    end = _after_line(buffer, 0)
    arguments = int(buffer[1:end]) if end else 0
    for _ in range(arguments):
        line = _after_line(buffer, end)
        end = line + int(buffer[end + 1 : line]) + 2 if line else 0
        if not end or end > len(buffer):
            return b""
    command = bytes(buffer[:end])
    del buffer[:end]
    return command


def take_all(buffer: bytearray) -> bytes:
    """Remove everything from the buffer: for what is not Redis."""
    everything = bytes(buffer)
    buffer.clear()
    return everything


class Proxy:
    """Forwards connections to a port of this machine, command by command."""

    def __init__(
        self, upstream_port: int, take: Callable[[bytearray], bytes] = take_command
    ) -> None:
        self._upstream_port = upstream_port
        self.take = take
        self._lock = threading.Lock()
        self._connections: set[_Connection] = set()
        self._rules: list[Rule] = []
        self.flow = threading.Event()
        self.flow.set()
        self.port = 0
        self.restore()

    def pause(self) -> None:
        """Stop all bytes, both ways; connections stay, and new ones can be made."""
        self.flow.clear()

    def resume(self) -> None:
        """Let the bytes go on."""
        self.flow.set()

    def cut(self) -> None:
        """Reset every connection and refuse new ones."""
        self._listener.close()
        self._thread.join()
        with self._lock:
            connections = list(self._connections)
        for connection in connections:
            connection.close()

    def restore(self) -> None:
        """Accept connections, on the port it always had."""
        self._listener = socket.create_server(("127.0.0.1", self.port))
        self._listener.settimeout(0.02)
        self.port = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def act_on(
        self, pattern: bytes, when: When, action: Callable[[], None] = lambda: None
    ) -> threading.Event:
        """Act on the next command whose bytes match a regular expression, once.

        The connection is closed after the action, but for ``passed``; what had not
        been forwarded by then never is. The command must be sent alone, not in a
        pipeline, for ``replied`` and ``passed``. Returns what is set afterwards.
        """
        rule = Rule(pattern, when, action)
        with self._lock:
            self._rules.append(rule)
        return rule.done

    def disarm(self) -> None:
        """Forget what was to be done."""
        with self._lock:
            self._rules.clear()

    def close(self) -> None:
        """End everything."""
        self.cut()
        self.resume()

    def take_rule(self, command: bytes) -> Rule | None:
        """Return the first rule that matches, and forget it."""
        with self._lock:
            for rule in self._rules:
                if rule.pattern.search(command):
                    self._rules.remove(rule)
                    return rule
        return None

    def forget(self, connection: "_Connection") -> None:
        """Drop a connection that was closed."""
        with self._lock:
            self._connections.discard(connection)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except TimeoutError:
                continue
            except OSError:
                return
            try:
                server = socket.create_connection(("127.0.0.1", self._upstream_port))
            except OSError:
                _reset(client)
                continue
            connection = _Connection(self, client, server)
            with self._lock:
                self._connections.add(connection)
            connection.start()


class _Connection:
    """One connection of a client and the one to the server that belongs to it."""

    def __init__(
        self, proxy: Proxy, client: socket.socket, server: socket.socket
    ) -> None:
        self._proxy = proxy
        self._client = client
        self._server = server
        self._awaited: Rule | None = None
        for sock in (client, server):
            sock.settimeout(None)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def start(self) -> None:
        """Forward both ways, each in a thread."""
        for forward in (self._requests, self._replies):
            threading.Thread(target=self._run, args=(forward,), daemon=True).start()

    def close(self) -> None:
        """Reset both sides; harmless when they are closed."""
        for sock in (self._client, self._server):
            _reset(sock)
        self._proxy.forget(self)

    def _run(self, forward: Callable[[], None]) -> None:
        with suppress(OSError):
            forward()
        self.close()

    def _requests(self) -> None:
        buffer = bytearray()
        while data := self._client.recv(65_536):
            buffer += data
            while command := self._proxy.take(buffer):
                self._proxy.flow.wait()
                if not self._forward(command):
                    return

    def _forward(self, command: bytes) -> bool:
        rule = self._proxy.take_rule(command)
        if rule and rule.when in ("before", "half"):
            forwarded = len(command) // 2 if rule.when == "half" else 0
            self._server.sendall(command[:forwarded])
            rule.act()
            return False
        if rule:
            self._awaited = rule
        self._server.sendall(command)
        return True

    def _replies(self) -> None:
        while data := self._server.recv(65_536):
            self._proxy.flow.wait()
            rule, self._awaited = self._awaited, None
            if rule and rule.when == "replied":
                rule.act()
                return
            self._client.sendall(data)
            if rule:
                rule.act()


def _after_line(buffer: bytearray, start: int) -> int:
    """Return the place behind the line that begins at ``start``, 0 if it is cut."""
    end = buffer.find(b"\r\n", start)
    return end + 2 if end >= 0 else 0


def _reset(sock: socket.socket) -> None:
    with suppress(OSError):
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        # Wakes the thread that waits for bytes; closing alone does not.
        sock.shutdown(socket.SHUT_RDWR)
    sock.close()
