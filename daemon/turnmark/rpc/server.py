"""The listener: a private Unix socket, an accept loop that outlives a full descriptor table."""

from __future__ import annotations

import errno
import os
import socket
import stat
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import msgspec
import structlog
from anyio.abc import TaskStatus

from turnmark.errors import CODES
from turnmark.rpc.connection import Connection, ConnectionStatistics, Peer
from turnmark.rpc.dispatch import Dispatcher, Method
from turnmark.rpc.messages import Failure, FailureAnswer, encode
from turnmark.rpc.socket_path import check_socket_path
from turnmark_events.errors import Busy, Refused, Unavailable
from turnmark_session_store.place_lock import PlaceTaken

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)

# The kernel caps it at net.core.somaxconn; beyond it, a client's connect gets EAGAIN.
_BACKLOG = 65_535
# Connections accepted in one go before other tasks get their turn.
_ACCEPT_BURST = 64
# A descriptor comes free when some client leaves, which no event tells: look again after this.
_FULL_RETRY_SECONDS = 1.0
_FULL = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
_UCRED = struct.Struct("iII")
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


class ServerStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """Who is connected, and how many have been since the start."""

    accepted: int
    refused: int
    connections: tuple[ConnectionStatistics, ...]


class SocketTaken(PlaceTaken):
    """Another daemon listens on the path; `facts["pid"]` is its pid, None if it can't be told."""

    def __init__(self, path: Path, pid: int | None) -> None:
        holder = f"process {pid}" if pid else "another process"
        Busy.__init__(
            self,
            f"{holder} listens on {path} already; stop it, or give this daemon another --socket",
            path=str(path),
            pid=pid,
        )


class Server:
    """Serves a method table on one Unix socket.

    A socket at `path` on which nobody listens was left by a dead daemon and is removed.
    """

    def __init__(
        self, *, path: Path, methods: Mapping[str, Method[Any]], grace_seconds: float = 5.0
    ) -> None:
        self._path = path
        self._dispatcher = Dispatcher(methods)
        self._grace_seconds = grace_seconds
        self._uids = frozenset({0, os.geteuid()})
        self._connections: set[Connection] = set()
        self._accepted = self._refused = 0
        self._accepting = anyio.CancelScope()
        self._reason = "turnmark is shutting down"

    def statistics(self) -> ServerStatistics:
        """Returns what the connections are doing now."""
        return ServerStatistics(
            accepted=self._accepted,
            refused=self._refused,
            connections=tuple(c.statistics() for c in self._connections),
        )

    async def run(self, *, task_status: TaskStatus[Path] = anyio.TASK_STATUS_IGNORED) -> None:
        """Serves until `stop`; started, with the path, once clients can connect.

        Raises:
            Refused: if the path is too long, its directory is not private, or something that is
                no socket is there.
            Unavailable: if the socket can't be made.
        """
        listener, identity = listen(self._path)
        async with anyio.create_task_group() as clients:
            try:
                with listener, self._accepting:
                    task_status.started(self._path)
                    while True:
                        await self._accept_burst(listener, clients.start_soon)
            finally:
                _remove_own(self._path, identity)
            for connection in self._connections:
                connection.stop(self._reason, self._grace_seconds)

    def stop(self, reason: str = "turnmark is shutting down") -> None:
        """Stops accepting, gives calls in flight the grace period, then closes with `reason`."""
        self._reason = reason
        self._accepting.cancel()

    async def _accept_burst(self, listener: socket.socket, start: Any) -> None:
        await anyio.wait_readable(listener)
        try:
            for _ in range(_ACCEPT_BURST):
                sock, _ = listener.accept()
                self._welcome(sock, start)
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            return
        except OSError as error:
            if error.errno not in _FULL:
                raise
            log.warning(
                "accept_paused",
                error=errno.errorcode[error.errno],
                connections=len(self._connections),
                retry_seconds=_FULL_RETRY_SECONDS,
            )
            await anyio.sleep(_FULL_RETRY_SECONDS)

    def _welcome(self, sock: socket.socket, start: Any) -> None:
        sock.setblocking(False)
        peer = peer_of(sock)
        if peer.uid not in self._uids:
            self._refuse(sock, peer)
            return
        self._accepted += 1
        connection = Connection(
            sock, name=f"c-{self._accepted}", peer=peer, dispatcher=self._dispatcher
        )
        self._connections.add(connection)
        start(self._serve, connection)

    def _refuse(self, sock: socket.socket, peer: Peer) -> None:
        self._refused += 1
        log.warning("peer_refused", uid=peer.uid, pid=peer.pid)
        failure = Failure(
            code=CODES["refused"],
            message=f"this turnmark serves its own user and root only, not uid {peer.uid}",
            data={"kind": "refused"},
        )
        with sock:
            try:
                sock.send(encode(FailureAnswer(id=None, error=failure)))
            except OSError:
                log.debug("refused_peer_left", pid=peer.pid)

    async def _serve(self, connection: Connection) -> None:
        log.debug("client_connected", connection=connection.name, pid=connection.peer.pid)
        try:
            await connection.run()
        except Exception:
            # One client's trouble must not end the others; a bug here is worth its traceback.
            log.exception("connection_failed", connection=connection.name)
        finally:
            self._connections.discard(connection)


def peer_of(sock: socket.socket) -> Peer:
    """Returns who is at the other end of a connected Unix socket.

    Where the system has no SO_PEERCRED, the private directory is the guard, and the answer is the
    daemon's own user.
    """
    if not hasattr(socket, "SO_PEERCRED"):
        return Peer(pid=0, uid=os.geteuid())
    raw = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _UCRED.size)
    pid, uid, _ = _UCRED.unpack(raw)
    return Peer(pid=pid, uid=uid)


def listen(path: Path) -> tuple[socket.socket, tuple[int, int]]:
    """Returns a listening socket at `path`, mode 0600, and its device and inode.

    A missing directory is made with mode 0700. A socket that is there and on which nobody listens
    is removed.

    Raises:
        SocketTaken: if another daemon listens there.
        Refused: if the path is too long, its directory is not private, or something that is no
            socket is there.
        Unavailable: if the system refuses the socket.
    """
    check_socket_path(path)
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        _make_directory(path.parent)
        _remove_stale(path)
        sock.setblocking(False)
        # Linux takes the mode of the file from the socket, so it is never wider than this; where
        # it does not, the chmod after follows, and the directory has kept others out.
        os.fchmod(sock.fileno(), 0o600)
        sock.bind(os.fspath(path))
        path.chmod(0o600)
        sock.listen(_BACKLOG)
        found = path.lstat()
    except OSError as error:
        sock.close()
        raise Unavailable(f"can't listen on {path}: {error.strerror or error}") from error
    except BaseException:
        sock.close()
        raise
    return sock, (found.st_dev, found.st_ino)


def _make_directory(directory: Path) -> None:
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = directory.stat()
    shared = found.st_mode & _OTHERS_WRITE and not found.st_mode & stat.S_ISVTX
    if shared or found.st_uid not in {0, os.geteuid()}:
        raise Refused(
            f"others could replace a socket in {directory}: use a directory of your own "
            f"(`chmod 700 {directory}`), or another `socket`"
        )


def _remove_stale(path: Path) -> None:
    try:
        found = path.lstat()
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(found.st_mode):
        raise Refused(
            f"{path} is there and is no socket; it was left as it is: move it away, or set `socket`"
        )
    _check_nobody_listens(path)
    path.unlink()
    log.info("stale_socket_removed", path=str(path))


def _check_nobody_listens(path: Path) -> None:
    """Passes if a socket is stale: a daemon with another state may listen on the same path."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)
        try:
            probe.connect(os.fspath(path))
        except (ConnectionRefusedError, FileNotFoundError):
            return
        except BlockingIOError:
            raise SocketTaken(path, None) from None  # its queue is full: somebody is there
        raise SocketTaken(path, peer_of(probe).pid)


def _remove_own(path: Path, identity: tuple[int, int]) -> None:
    try:
        found = path.lstat()
        if (found.st_dev, found.st_ino) == identity:
            path.unlink()
    except OSError as error:
        log.debug("socket_not_removed", path=str(path), error=str(error))
