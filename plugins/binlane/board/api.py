"""The board's FastAPI app: the page, its files and the JSON API. Every route needs a user of Airflow (docs/board.md).

FastAPI's own documentation routes and mounted folders need no login, so they are not used: the page's files and the
API's schema are routes of this app.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final

from fastapi import Depends, FastAPI, HTTPException, Query, Request, Response, status
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse

from binlane.board import models, record_models
from binlane.board.board_reader import BoardReader, NotFound, Place
from binlane.board.body_limit import BodyLimit
from binlane.board.gate import ReaderError
from binlane.board.host import Host, guard_action, session_token
from binlane.board.metrics import CONTENT_TYPE, exposition
from binlane.board.records import Records
from binlane.board.verifying import start_verification
from binlane.choices import VerifyScope
from binlane.errors import BinlaneError
from binlane.orchestration.commands import operate
from binlane.orchestration.commands import skip as skipping
from binlane.safe_text import one_line
from binlane.state.records.databases import Order, Search

log = logging.getLogger(__name__)

STATIC: Final = Path(__file__).parent / "static"
FILES: Final[Mapping[str, str]] = {
    "style.css": "text/css",
    "app.js": "text/javascript",
    "views.js": "text/javascript",
    "draw.js": "text/javascript",
    "help.js": "text/javascript",
    "fleet.js": "text/javascript",
    "parts.js": "text/javascript",
    "uPlot.iife.min.js": "text/javascript",
    "uPlot.min.css": "text/css",
}
"""The static files, by name."""
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
)
_LIMIT: Final = 200

Limit = Annotated[int, Query(ge=1, le=_LIMIT)]
Seqno = Annotated[int, Query(ge=0, lt=1 << 62)]
Pattern = Annotated[str, Query(max_length=200)]


def build_app(host: Host) -> FastAPI:
    """The app for the Airflow behind ``host``; to be mounted under a prefix."""
    app = FastAPI(
        title="binlane board",
        description="The data of the replication board, as JSON. Times are seconds since the epoch.",
        version="1",
        dependencies=[Depends(host.get_user)],
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
    )
    app.add_middleware(BodyLimit)
    app.middleware("http")(_with_headers)
    app.add_exception_handler(NotFound, _not_found)
    app.add_exception_handler(PermissionError, _forbidden)
    app.add_exception_handler(BinlaneError, _failed)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(host.database_error, _unavailable)
    _add_files(app)
    _add_reads(app, host)
    _add_window_reads(app, host)
    _add_records(app, host)
    _add_actions(app, host)
    _add_skips(app, host)
    return app


def _add_files(app: FastAPI) -> None:
    @app.get("/", include_in_schema=False)
    def page(request: Request) -> Response:
        """The page."""
        return _file(request, "index.html", "text/html")

    @app.get("/static/{name}", include_in_schema=False)
    def static(request: Request, name: str) -> Response:
        """A file of the page."""
        if name not in FILES:
            raise HTTPException(status.HTTP_404_NOT_FOUND, "no such file")
        return _file(request, name, FILES[name])

    @app.get("/api/openapi.json", include_in_schema=False)
    def schema() -> dict[str, Any]:
        """The API's own description."""
        return app.openapi()


def _add_reads(app: FastAPI, host: Host) -> None:
    reading = BoardReader(host)
    # a default value instead of an annotation, because the dependency is the host's
    user_of = Depends(host.get_user)

    @app.get("/api/session")
    def session(request: Request, user: Any = user_of) -> models.Session:
        """The user's name, and the token for actions."""
        return models.Session(user=host.user_name(user), token=session_token(request))

    @app.get("/api/channels")
    def channels(user: Any = user_of) -> list[models.Card]:
        """Every channel whose DAG the user may read."""
        return reading.channels(user)

    @app.get("/metrics", response_class=Response)
    def metrics(user: Any = user_of) -> Response:
        """The health of every channel whose DAG the user may read, for Prometheus."""
        return Response(exposition(reading.healths(user)), media_type=CONTENT_TYPE)

    @app.get("/api/channels/{name}")
    def channel(name: str, user: Any = user_of) -> models.Channel:
        """One channel: watermark, open window, lanes, errors, the last windows and the heat map."""
        return reading.channel(user, name)

    @app.get("/api/channels/{name}/skips/{seqno}/events", response_class=Response)
    def skipped_events(name: str, seqno: int, user: Any = user_of) -> Response:
        """A skipped transaction's events as a binlog file, for those who may edit the DAG."""
        headers = {"Content-Disposition": f'attachment; filename="skipped-{seqno}.binlog"'}
        events = reading.skipped_events(user, name, seqno)
        return Response(events, media_type="application/octet-stream", headers=headers)


def _add_window_reads(app: FastAPI, host: Host) -> None:
    """From a channel's windows down to the rows of a transaction."""
    reading = BoardReader(host)
    user_of = Depends(host.get_user)

    @app.get("/api/channels/{name}/windows")
    def windows(name: str, before: int | None = None, limit: Limit = 50, user: Any = user_of) -> list[models.WindowRow]:
        """A page of the channel's windows, newest first; `before`: only windows with smaller numbers."""
        return reading.windows(user, name, before, limit)

    @app.get("/api/channels/{name}/windows/{window_id}")
    def window(name: str, window_id: str, user: Any = user_of) -> models.Window:
        """One window: lanes, shards, tables, barriers by cause."""
        return reading.window(user, name, window_id)

    @app.get("/api/channels/{name}/windows/{window_id}/lanes/{lane}/blocks")
    def blocks(
        name: str, window_id: str, lane: int, after: Seqno = 0, limit: Limit = 50, user: Any = user_of
    ) -> models.Blocks:
        """A page of a lane's blocks that end after the seqno `after`; only while the window's files are kept."""
        return reading.blocks(user, name, window_id, lane, after, limit)

    @app.get("/api/channels/{name}/windows/{window_id}/lanes/{lane}/blocks/{first_seqno}/transactions")
    def transactions(
        name: str,
        window_id: str,
        lane: int,
        first_seqno: int,
        after: Seqno = 0,
        limit: Limit = 50,
        user: Any = user_of,
    ) -> models.Transactions:
        """A page of a block's transactions. Statements only for those who may edit the DAG."""
        return reading.transactions(user, name, window_id, lane, first_seqno, after, limit)

    @app.get("/api/channels/{name}/windows/{window_id}/lanes/{lane}/blocks/{first_seqno}/transactions/{seqno}/rows")
    def rows(
        name: str,
        window_id: str,
        lane: int,
        first_seqno: int,
        seqno: int,
        after: Seqno = 0,
        limit: Limit = 50,
        user: Any = user_of,
    ) -> models.Rows:
        """A page of a transaction's row changes with their values, for those who may edit the DAG."""
        return reading.rows(user, name, window_id, lane, first_seqno, seqno, after, limit)


def _add_records(app: FastAPI, host: Host) -> None:
    """Databases, repairs, first copies, restores, and the place of a transaction."""
    records = Records(host)
    user_of = Depends(host.get_user)

    @app.get("/api/databases")
    def find(
        pattern: Pattern = "*", lane: Seqno | None = None, drifted: bool = False, sort: Order = Order.NAME,
        limit: Limit = 50, user: Any = user_of,
    ) -> record_models.Databases:  # fmt: skip
        """Databases by pattern (`*`, `?`) in every channel whose DAG the user may read: `limit` of each channel."""
        return records.find(user, Search(pattern, lane, drifted, sort), limit)

    @app.get("/api/channels/{name}/databases")
    def databases(
        name: str, pattern: Pattern = "*", lane: Seqno | None = None, drifted: bool = False,
        sort: Order = Order.NAME, after: Seqno = 0, limit: Limit = 50, user: Any = user_of,
    ) -> record_models.Databases:  # fmt: skip
        """A page of the channel's databases; `after`: databases to leave out."""
        return records.databases(user, name, Search(pattern, lane, drifted, sort), after, limit)

    @app.get("/api/channels/{name}/records")
    def repairs_and_copy(name: str, user: Any = user_of) -> record_models.Records:
        """The channel's last repairs, first copy, restores onto its target, drills and commands."""
        return records.records(user, name)

    @app.get("/api/channels/{name}/windows/{window_id}/lanes/{lane}/transactions/{seqno}")
    def locate(name: str, window_id: str, lane: int, seqno: int, user: Any = user_of) -> record_models.TransactionPlace:
        """The block that has a transaction; only while the window's files are kept."""
        return records.locate(user, name, window_id, lane, seqno)


def _act(host: Host, user: Any, name: str, what: str, do: Callable[[Place], str]) -> models.ActionResult:
    """Check that the user may edit the channel's DAG, do the action, and log it."""
    message = do(BoardReader(host).place(user, name, edit=True))
    log.info("board: %s: %s of channel %s: %s", host.user_name(user), what, name, message)
    return models.ActionResult(message=message)


def _add_actions(app: FastAPI, host: Host) -> None:
    """Actions; they call the functions of the command line."""
    act = partial(_act, host)
    user_of = Depends(host.get_user)
    guarded = [Depends(guard_action)]

    @app.post("/api/channels/{name}/stop", dependencies=guarded)
    def stop(name: str, body: models.StopRequest, user: Any = user_of) -> models.ActionResult:
        """Ask the lanes of the open window to stop; `binlane stop`."""
        folder, by = host.channels(), f"{host.user_name(user)}, on the board"

        def do(place: Place) -> str:
            return operate.stop(place.declared, folder, now=body.now, places={}, by=by, resolve=host.resolve)

        return act(user, name, "stop", do)

    @app.post("/api/channels/{name}/resume", dependencies=guarded)
    def resume(name: str, user: Any = user_of) -> models.ActionResult:
        """Cancel a stop request; `binlane resume`."""
        folder, by = host.channels(), f"{host.user_name(user)}, on the board"

        def do(place: Place) -> str:
            return operate.resume(place.declared, folder, by=by, resolve=host.resolve)

        return act(user, name, "resume", do)

    @app.post("/api/channels/{name}/verify", dependencies=guarded)
    def verify(name: str, body: models.VerifyRequest, user: Any = user_of) -> models.ActionResult:
        """Start a run of the channel's DAG that compares source and target and applies nothing; `binlane verify`."""
        kind = VerifyScope.FULL if body.full else VerifyScope.WINDOW

        def do(place: Place) -> str:
            return start_verification(host, BoardReader(host), user, place, kind)

        return act(user, name, f"verify {kind}", do)

    @app.post("/api/channels/{name}/decide", dependencies=guarded)
    def decide(name: str, body: models.DecideRequest, user: Any = user_of) -> models.ActionResult:
        """Record whether an undecided DDL has run; `binlane decide`."""
        folder, by = host.channels(), f"{host.user_name(user)}, on the board"

        def do(_: Place) -> str:
            return operate.decide(name, folder, body.seqno, ran=body.ran, by=by, resolve=host.resolve)

        return act(user, name, f"decide {body.seqno} ran={body.ran}", do)


def _add_skips(app: FastAPI, host: Host) -> None:
    """Orders to skip transactions."""
    act = partial(_act, host)
    user_of = Depends(host.get_user)
    guarded = [Depends(guard_action)]

    @app.post("/api/channels/{name}/skip", dependencies=guarded)
    def skip(name: str, body: models.SkipRequest, user: Any = user_of) -> models.ActionResult:
        """Skip transactions of the open window, with a reason; `binlane skip`."""
        folder, by = host.channels(), f"{host.user_name(user)}, on the board"

        def do(_: Place) -> str:
            which = skipping.Which(body.seqno, body.gtid, body.range)
            return skipping.skip(name, folder, which, body.reason, by=by, resolve=host.resolve)

        return act(user, name, f"skip {body.seqno or body.gtid or body.range!r}: {body.reason!r}", do)

    @app.post("/api/channels/{name}/cancel-skip", dependencies=guarded)
    def cancel_skip(name: str, body: models.CancelSkipRequest, user: Any = user_of) -> models.ActionResult:
        """Cancel an order to skip that is not carried out yet; `binlane skip --cancel`."""
        folder, by = host.channels(), f"{host.user_name(user)}, on the board"

        def do(_: Place) -> str:
            return skipping.cancel(name, folder, skipping.Which(seqno=body.seqno), by=by, resolve=host.resolve)

        return act(user, name, f"cancel-skip {body.seqno}", do)


def _file(request: Request, name: str, kind: str) -> Response:
    """A file with its digest as ETag: requested each time, sent again only if it has changed."""
    data = (STATIC / name).read_bytes()
    tag = f'"{hashlib.sha256(data).hexdigest()[:32]}"'
    headers = {"ETag": tag, "Cache-Control": "no-cache"}
    if request.headers.get("If-None-Match") == tag:
        return Response(status_code=status.HTTP_304_NOT_MODIFIED, headers=headers)
    return Response(data, media_type=f"{kind}; charset=utf-8", headers=headers)


async def _with_headers(request: Request, call_next: Callable[[Request], Awaitable[Response]]) -> Response:
    response = await call_next(request)
    response.headers["Content-Security-Policy"] = _POLICY
    response.headers["X-Content-Type-Options"] = "nosniff"
    response.headers["Referrer-Policy"] = "same-origin"
    response.headers.setdefault("Cache-Control", "no-store")
    return response


def _answer(detail: object, code: int) -> Response:
    return JSONResponse({"detail": models.encodable(str(detail))}, code)


def _not_found(_: Request, exc: Exception) -> Response:
    return _answer(exc, status.HTTP_404_NOT_FOUND)


def _forbidden(_: Request, exc: Exception) -> Response:
    return _answer(exc, status.HTTP_403_FORBIDDEN)


def _failed(_: Request, exc: Exception) -> Response:
    """A binlane error, as the command line prints it: 503 if it is retryable, else 409."""
    assert isinstance(exc, BinlaneError)
    if isinstance(exc, ReaderError):
        retried = exc.cause.retryable
        code = status.HTTP_503_SERVICE_UNAVAILABLE if retried else status.HTTP_409_CONFLICT
        return _answer(exc, code)
    code = status.HTTP_503_SERVICE_UNAVAILABLE if exc.retryable else status.HTTP_409_CONFLICT
    return _answer(f"{type(exc).__name__}: {exc}", code)


async def _invalid(_: Request, exc: Exception) -> Response:
    """What is wrong with an action's values, without the values: JSON cannot repeat all of them (NaN)."""
    assert isinstance(exc, RequestValidationError)
    found = [{"type": each["type"], "loc": list(each["loc"]), "msg": each["msg"]} for each in exc.errors()]
    return JSONResponse({"detail": found}, status.HTTP_422_UNPROCESSABLE_CONTENT)


def _unavailable(_: Request, exc: Exception) -> Response:
    """A database is locked (Airflow's on SQLite), restarting, or out of connections. Its error has hosts, accounts and
    whole queries, and here nobody knows what the user may see."""
    log.warning("board: a database does not answer: %s", one_line(str(getattr(exc, "orig", exc))))
    detail = "a database does not answer, and the web server's log has its error; look at the page, then try again"
    return JSONResponse({"detail": detail}, status.HTTP_503_SERVICE_UNAVAILABLE, {"Retry-After": "1"})
