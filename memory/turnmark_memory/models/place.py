"""Where an API of models is, with the names that a message to a person needs."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

import msgspec


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """An API's address for one model.

    `table` is the table of the configuration that names it, `key_name` the variable or credential
    that holds its key, empty where it wants none.
    """

    url: str
    table: str
    model: str
    key_name: str = ""

    @property
    def host(self) -> str:
        """The host, with the port where the address names one, never a password in it."""
        return urlsplit(self.url).netloc.rpartition("@")[2] or "the address"

    @property
    def path(self) -> str:
        """What follows the host in the address."""
        return urlsplit(self.url).path

    @property
    def is_loopback(self) -> bool:
        """Tells whether the address is this machine's own, by its name alone."""
        try:
            host = urlsplit(self.url).hostname or ""
            return host == "localhost" or ipaddress.ip_address(host).is_loopback
        except ValueError:
            return False
