"""An S3 server in this process, which can go away for a while and keeps its objects."""

from __future__ import annotations

import socket
import threading
from typing import TYPE_CHECKING, Any, Final

import boto3
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
from werkzeug.serving import make_server

from lab.servers import HOST, free_port

if TYPE_CHECKING:
    from werkzeug.serving import BaseWSGIServer

BUCKET: Final = "binlane"
_ACCOUNT: Final = {
    "AWS_ACCESS_KEY_ID": "made-up",
    "AWS_SECRET_ACCESS_KEY": "made-up",
    "AWS_DEFAULT_REGION": "us-east-1",
}


class ObjectStore:
    """moto's S3 server on a port of 127.0.0.1. Its objects are in memory and outlive ``stop``."""

    def __init__(self) -> None:
        self.port = free_port()
        self._application = DomainDispatcherApplication(create_backend_app)
        self._connections = set[socket.socket]()
        self._server: BaseWSGIServer | None = None

    def environment(self) -> dict[str, str]:
        """Variables by which fsspec finds the server."""
        return {**_ACCOUNT, "AWS_ENDPOINT_URL": f"http://{HOST}:{self.port}"}

    def start(self) -> None:
        """Listen, again on the same port."""
        connections = self._connections

        class Handler(MotoRequestHandler):
            """Knows its connections, so that ``stop`` can cut those that are kept open."""

            def setup(self) -> None:
                connections.add(self.request)
                super().setup()

            def finish(self) -> None:
                connections.discard(self.request)
                super().finish()

            def log_request(self, *_: Any) -> None:
                """Not to the terminal."""

        self._server = make_server(HOST, self.port, self._application, threaded=True, request_handler=Handler)
        threading.Thread(target=self._server.serve_forever, name="object-store", daemon=True).start()

    def stop(self) -> None:
        """Refuse connections and cut those that are open; a no-op if the server does not run."""
        if self._server is None:
            return
        self._server.shutdown()
        self._server.server_close()
        self._server = None
        for connection in tuple(self._connections):
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:  # closed meanwhile
                continue

    def make_bucket(self) -> None:
        """The bucket of the work folders."""
        self._client().create_bucket(Bucket=BUCKET)

    def names(self, prefix: str) -> list[str]:
        """Names of objects."""
        pages = self._client().get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=prefix)
        return [found["Key"] for page in pages for found in page.get("Contents", ())]

    def _client(self) -> Any:
        return boto3.client(
            "s3",
            endpoint_url=f"http://{HOST}:{self.port}",
            aws_access_key_id=_ACCOUNT["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=_ACCOUNT["AWS_SECRET_ACCESS_KEY"],
            region_name=_ACCOUNT["AWS_DEFAULT_REGION"],
        )
