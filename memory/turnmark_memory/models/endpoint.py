"""One request to an API of models: a JSON object out, a JSON object back, or why there is none.

httpx is imported at the first request, so that a daemon without a model pays nothing for it.
Every step has a deadline, and an answer has a size beyond which it is not read. Redirects are not
followed: they would take turns and a key to an address that nobody configured.
"""

from __future__ import annotations

import json
import socket
import ssl
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, cast

import anyio

from turnmark_memory.models.deadlines import Deadlines
from turnmark_memory.models.loose_json import object_in
from turnmark_memory.models.place import Place
from turnmark_memory.models.statuses import error_answer
from turnmark_memory.writers.writer import WriterFailed

if TYPE_CHECKING:
    import httpx

# Edits of one batch are some tens of kilobytes, and reasoning comes on top. What is longer is no
# answer to what was asked.
ANSWER_LIMIT_BYTES: Final = 4 * 1024 * 1024

_OK: Final = 200
_FIRST_ERROR: Final = 300
_SERVER_ERROR: Final = 500


async def post(
    place: Place, headers: Mapping[str, str], question: Mapping[str, Any], deadlines: Deadlines
) -> dict[str, Any]:
    """Returns the object that the API answers; cancelling it closes the connection.

    Raises:
        ErrorAnswer: if it answers with an error.
        WriterFailed: if there is no answer, or none that is whole, JSON and of a sane size.
    """
    exchange = _Exchange(place, deadlines)
    # As ASCII: half a surrogate pair must not break what is sent.
    content = json.dumps(question).encode("ascii")
    status, told, body = await exchange.run(
        content, {**headers, "content-type": "application/json", "accept": "application/json"}
    )
    return _judged(place, status, told, body)


class _Exchange:
    """A request on its way; knows how far it came, so that its end can be told in words."""

    def __init__(self, place: Place, deadlines: Deadlines) -> None:
        self._place = place
        self._deadlines = deadlines
        self._has_begun = False
        self._received_bytes = 0

    async def run(
        self, content: bytes, headers: Mapping[str, str]
    ) -> tuple[int, Mapping[str, str], bytes]:
        """Returns status, headers and body of the answer."""
        import httpx  # noqa: PLC0415  only who asks a model pays for it

        with anyio.move_on_after(self._deadlines.total_seconds):
            try:
                return await self._answered(content, headers)
            except TimeoutError as error:
                raise self._stalled() from error
            except (httpx.HTTPError, httpx.InvalidURL, UnicodeError) as error:
                raise self._broken(error) from error
        raise self._too_slow()

    async def _answered(
        self, content: bytes, headers: Mapping[str, str]
    ) -> tuple[int, Mapping[str, str], bytes]:
        async with _client(self._place, self._deadlines) as client:
            request = client.build_request("POST", self._place.url, content=content)
            request.headers.update(headers)
            response = await client.send(request, stream=True)
            self._has_begun = True
            try:
                return response.status_code, response.headers, await self._body(response)
            finally:
                with anyio.CancelScope(shield=True):
                    await response.aclose()

    async def _body(self, response: httpx.Response) -> bytes:
        parts: list[bytes] = []
        chunks = aiter(response.aiter_bytes())
        while True:
            with anyio.fail_after(self._deadlines.stall_seconds):
                chunk = await anext(chunks, None)
            if chunk is None:
                return b"".join(parts)
            parts.append(chunk)
            self._received_bytes += len(chunk)
            if self._received_bytes > ANSWER_LIMIT_BYTES:
                limit = ANSWER_LIMIT_BYTES // 1024 // 1024
                raise WriterFailed(f"the answer from {self._place.host} is over {limit} MiB long")

    def _too_slow(self) -> WriterFailed:
        total, table = f"{self._deadlines.total_seconds:g} s", self._place.table
        advice = f"a slow model needs a higher {table}.timeout_seconds"
        if not self._has_begun:
            return WriterFailed(f"no answer from {self._place.host} within {total}; {advice}")
        return WriterFailed(
            f"the answer from {self._place.host} was not whole after {total}; {advice}"
        )

    def _stalled(self) -> WriterFailed:
        host = self._place.host
        if not self._has_begun:
            return WriterFailed(f"{host} took the question and began no answer in time")
        if not self._received_bytes:
            return WriterFailed(f"{host} began an answer and sent none of it")
        return WriterFailed(f"the answer from {host} stopped part-way")

    def _broken(self, error: Exception) -> WriterFailed:
        import httpx  # noqa: PLC0415  as above

        host = self._place.host
        if isinstance(error, httpx.ReadTimeout | httpx.WriteTimeout):
            return self._stalled()
        if isinstance(error, httpx.ConnectTimeout):
            reason = f"{host} takes no connection; is it up?"
        elif isinstance(error, httpx.ConnectError):
            reason = self._unreached(error)
        elif isinstance(error, httpx.InvalidURL | httpx.UnsupportedProtocol | UnicodeError):
            reason = f"{self._place.table}.base_url is no http address; correct it"
        elif isinstance(error, httpx.ProxyError):
            reason = f"the proxy on the way to {host} refuses; check HTTPS_PROXY and NO_PROXY"
        elif isinstance(error, httpx.DecodingError):
            reason = f"the answer from {host} can't be unpacked"
        elif self._has_begun:
            reason = f"{host} broke off in the middle of an answer"
        else:
            reason = f"{host} closed the connection without an answer"
        return WriterFailed(reason, transport=True)

    def _unreached(self, error: Exception) -> str:
        host, table = self._place.host, self._place.table
        causes = list(_causes(error))
        if any(isinstance(cause, socket.gaierror) for cause in causes):
            return f"the host {host} is not known here; check {table}.base_url and the network"
        if any(isinstance(cause, ssl.SSLError) for cause in causes):
            return (
                f"{host} speaks no TLS that is trusted here; check the scheme of {table}.base_url"
            )
        return f"nobody answers at {host}; start the model's server or correct {table}.base_url"


def _client(place: Place, seconds: Deadlines) -> httpx.AsyncClient:
    import httpx  # noqa: PLC0415  as above

    return httpx.AsyncClient(
        timeout=httpx.Timeout(seconds.first_byte_seconds, connect=seconds.connect_seconds),
        trust_env=not place.is_loopback,  # no proxy between this machine and itself
        verify=_trusted() if place.url.startswith("https:") else False,
    )


_trust: ssl.SSLContext | None = None


def _trusted() -> ssl.SSLContext:
    """Returns what says which servers are trusted; read once, since it takes some 20 ms."""
    import httpx  # noqa: PLC0415  as above

    global _trust
    if _trust is None:
        _trust = httpx.create_ssl_context()
    return _trust


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yields an error and all that led to it."""
    found: BaseException | None = error
    while found is not None:
        yield found
        if isinstance(found, BaseExceptionGroup):
            group = cast("BaseExceptionGroup[BaseException]", found)
            for inner in group.exceptions:
                yield from _causes(inner)
        found = found.__cause__ or found.__context__


def _judged(place: Place, status: int, headers: Mapping[str, str], body: bytes) -> dict[str, Any]:
    """Returns the object of an answer, or says what the answer is instead."""
    try:
        found: Any = json.loads(body)
    except (ValueError, RecursionError):
        found = None
    answer = object_in(found)
    if status == _OK and answer.get("error"):
        status = _inner_status(answer["error"])
    if status != _OK:
        raise error_answer(status, answer, body, headers.get("retry-after", ""))
    if not answer:
        kind = headers.get("content-type", "").partition(";")[0].strip()[:40] or "something"
        raise WriterFailed(
            f"{place.host} answers {kind} that is no JSON object; is {place.table}.base_url the "
            "address of the API?",
            transport=True,
        )
    return answer


def _inner_status(error: Any) -> int:
    """Returns the status of an error that a gateway answers with 200."""
    code = object_in(error).get("code")
    return code if isinstance(code, int) and code >= _FIRST_ERROR else _SERVER_ERROR
