"""Connections by PyMySQL."""

from __future__ import annotations

import functools
import ssl
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pymysql import connections

if TYPE_CHECKING:
    from pymysql.cursors import Cursor

    Driver = connections.Connection[Cursor]
else:
    Driver = connections.Connection


class Connection(Driver):
    """PyMySQL's own, but for TLS that verifies nothing: that has one context a process.

    PyMySQL makes one a connection and loads every certificate authority of the machine into it, 0.1 s of CPU.
    """

    def _create_ssl_ctx(self, sslp: Mapping[str, Any]) -> ssl.SSLContext:
        if not sslp:
            return _unverified()
        context: ssl.SSLContext = super()._create_ssl_ctx(sslp)  # type: ignore[misc]  # the stubs leave it out
        return context


@functools.cache
def _unverified() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
