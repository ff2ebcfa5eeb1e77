"""A folder and a web server that no process of a channel has a reason to touch."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Final

_FILES: Final = ("manifest.json", "plan.json", "formats.json", "deep/er/file.txt")
"""Among them names of a window's own files."""


@dataclass(frozen=True, slots=True)
class Witness:
    """Its folder, its address, and what was asked of it."""

    folder: Path
    url: str
    requests: list[str]

    def assert_untouched(self) -> None:
        """Nothing was removed, written or fetched."""
        found = {str(path.relative_to(self.folder)) for path in self.folder.rglob("*") if path.is_file()}
        assert (found, self.requests) == (set(_FILES), [])


@contextlib.contextmanager
def witness_in(folder: Path) -> Iterator[Witness]:
    """A witness with its files in ``folder``, and a server on a free port of this machine."""
    for name in _FILES:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("{}")
    requests: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            requests.append(self.path)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"{}")

        do_HEAD = do_GET  # noqa: N815 -- the base class looks for this name

        def log_message(self, *_: object) -> None:
            """Nothing on the terminal."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield Witness(folder, f"http://127.0.0.1:{server.server_port}", requests)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
