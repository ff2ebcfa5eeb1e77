"""A limit for the bytes of a request.

A body is read, and kept in memory, before anybody asks who has sent it: without a limit, whoever reaches Airflow's port
would decide how much memory its server takes.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from http import HTTPStatus
from typing import Any, Final

from fastapi import HTTPException
from fastapi.responses import JSONResponse

LARGEST_BODY: Final = 64 << 10
"""Bytes. A reason and a GTID are the longest texts of an action."""

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


class BodyLimit:
    """ASGI middleware: answers 413 to a longer body, of which no more than this is read."""

    def __init__(self, app: Callable[[Any, Receive, Send], Awaitable[None]]) -> None:
        self._app = app

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        """Pass the request on, piece by piece."""
        left = LARGEST_BODY

        async def counted() -> Message:
            nonlocal left
            message = await receive()
            left -= len(message.get("body", b""))
            if left < 0:
                raise HTTPException(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, _TOO_LARGE)
            return message

        if _declared(scope) > LARGEST_BODY:
            await JSONResponse({"detail": _TOO_LARGE}, HTTPStatus.REQUEST_ENTITY_TOO_LARGE)(scope, receive, send)
        else:
            await self._app(scope, counted, send)


_TOO_LARGE: Final = f"expected a request of at most {LARGEST_BODY:,} bytes, found more"


def _declared(scope: Any) -> int:
    """The length that a request's head declares; 0 if it declares none."""
    text = dict(scope.get("headers", ())).get(b"content-length", b"")
    return int(text) if text.isdigit() and len(text) < 20 else LARGEST_BODY + 1 if text else 0
