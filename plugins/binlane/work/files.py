"""The work folder of a window: a place named by a URI, where files are written once, whole, and never changed.

A file appears under its name only when it is complete: local files are written beside it, fsynced and renamed; object
stores show an object only when its upload has ended. Writing the same bytes again is a no-op, other bytes an error.

Others may be able to write there, too. So the target has the digests of an open window's files
(``binlane.windows.files``), and a folder that was opened with them reads a file with another digest as little as one
that is not among them. Segments have their digests in manifest.json, lane files in plan.json.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import posixpath
import re
import tempfile
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import field
from functools import cached_property
from pathlib import Path
from typing import IO, Any, cast

import fsspec
from blake3 import blake3

from binlane.errors import ConfigError, PlanError, WorkError, has_secret, without_accounts
from binlane.lazy_dataclass import dataclass
from binlane.regular_files import NotRegularFileError, open_regular
from binlane.work.real_folders import PRIVATE_FOLDER, entered, remove_tree, sync

MANIFEST = "manifest.json"
CHANNEL = "channel.json"
SCHEMA = "schema.json"
DEFINITIONS = "definitions.json"
"""By which counts of statements the window's definitions were read."""
SOURCE_SCHEMA = "source_schema.json"
"""The source's definitions when the window was extracted, in its own names; like schema.json."""
PROGRAMS = "programs.json"
"""The routines, views and triggers that both servers have alike behind the window."""
CONTEXT = "context.json"
PLAN = "plan.json"
DATABASES = "databases.json"
"""Next to the plan: what the window changes in each database."""
SOURCE_TABLES = "source_tables.json"
"""Next to the plan: the source's definitions, at the window's end, of tables that the window alters."""
PARTITIONED = "partitioned.json"
"""Next to the plan: the partitioned ones of the target's tables that the window writes."""
REACHED = "reached.json"
"""Next to the plan: the target's routines and views that the window's statements reach."""
VARIABLES = "variables.json"
"""Next to the plan: the target's global variables that may decide what the window does."""
PRIVATE_FILE = 0o600
_OPEN_FILE = 0o644
_OPEN_FOLDER = 0o755
Digests = Mapping[str, str]
"""SHA-256 of a window's files, in hex, by their names in the window's folder."""
_NAME_OF_FILE = re.compile(r"(?:[0-9a-f]{16}/)?[A-Za-z0-9][A-Za-z0-9_.-]{0,199}")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_MOST_FILES = 1_000
"""Of a window: its inputs, and what a plan is made of."""
_MOST_BYTES = 1 << 30
"""Of a file that is read as a whole: what no file of a window has."""
SMALL = 1 << 20
"""Of one that has a few lines, and of which the target has no digest."""
_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS})
"""Errno values of files; errors of sockets have other values."""


@contextlib.contextmanager
def room_needed(uri: str) -> Iterator[None]:
    """Turns the error of a full or read-only disk under the work folder ``uri`` into WorkError."""
    try:
        yield
    except OSError as exc:
        if exc.errno not in _NO_ROOM:
            raise
        raise WorkError(
            f"{uri}: cannot be written: {exc.strerror}; this step writes nothing to the target. Free space, or set "
            "work.uri to a larger place if no window is open, then run again"
        ) from exc


def digests_in(answer: object, where: str) -> Digests:
    """The digests that a step of another process has answered, which who may edit Airflow's XComs has written as he
    likes. Raises PlanError for anything that no step answers."""
    is_known = (
        isinstance(answer, Mapping)
        and len(answer) <= _MOST_FILES
        and all(isinstance(name, str) and _NAME_OF_FILE.fullmatch(name) for name in answer)
        and all(isinstance(digest, str) and _DIGEST.fullmatch(digest) for digest in answer.values())
    )
    if not is_known:
        raise PlanError(
            f"{where}: expected the SHA-256 of files of the window, as the step before has answered them, found "
            "something else: somebody has changed the answer (an XCom); run again"
        )
    return cast(Digests, answer)


def digest_of(data: bytes) -> str:
    """SHA-256, in hex."""
    return hashlib.sha256(data).hexdigest()


def file_system(uri: str) -> tuple[Any, str]:
    """fsspec's file system of a folder, and the folder's path in it. Raises ConfigError for a URI with a password, and
    for one of a storage that is not known or not installed."""
    if has_secret(uri):
        raise ConfigError(
            f"{without_accounts(uri)}: expected a folder's URI without a password, which errors and notes would show: "
            "give it to the storage's own configuration on each machine (variables such as AWS_SECRET_ACCESS_KEY, or "
            "fsspec's files in ~/.config/fsspec), and change it, since it may have been shown"
        )
    try:
        filesystem, path = fsspec.core.url_to_fs(uri)
    except ImportError as exc:
        raise ConfigError(
            f"{uri}: expected a storage whose package is installed: {exc}; install it into binlane's Python "
            "environment on each machine, then run again"
        ) from exc
    except ValueError as exc:
        raise ConfigError(
            f"{uri}: expected a folder, or the URI of a storage that fsspec knows, such as s3://bucket/folder: {exc}"
        ) from exc
    return filesystem, path


@dataclass(frozen=True)
class WorkFolder:
    """A folder of the work directory, by URI: a local path, ``file://``, ``s3://`` or another that fsspec knows."""

    uri: str
    digests: Digests | None = field(default=None, compare=False)
    """Of the files of the window that ``read`` returns; None: they are not known, and every file is read."""
    below: str = field(default="", compare=False)
    """This folder's place in the window's folder, with a slash behind it; empty for the window's folder."""
    depth: int = field(default=0, compare=False)
    """How many folders of the path, from its end, are below the work folder: none of these may be a link."""
    others_read: bool = field(default=False, compare=False)
    """Whether what is made here may be read by every account: it has no rows."""

    @classmethod
    def of_window(cls, uri: str, digests: Digests | None = None) -> WorkFolder:
        """The folder of a window, <work folder>/<channel>/<window>."""
        return cls(uri, digests, depth=2)

    @cached_property
    def _place(self) -> tuple[Any, str]:
        return file_system(self.uri)

    @property
    def is_local(self) -> bool:
        """Whether the files are on this machine, and so can be mapped into memory."""
        return "file" in self._place[0].protocol

    def nearest(self) -> Path:
        """The folder, or the one above it that exists already, of a local one."""
        place = Path(self.path(""))
        return next(each for each in (place, *place.parents) if each.exists())

    def child(self, name: str) -> WorkFolder:
        """A folder below this one. Raises PlanError as ``path``."""
        return WorkFolder(posixpath.join(self.uri, self._inside(name)), depth=self.depth + 1)

    def plans(self, key: str) -> WorkFolder:
        """The folder of a plan, in its window's folder."""
        return WorkFolder(posixpath.join(self.uri, key), self.digests, f"{key}/", self.depth + 1)

    @property
    def window(self) -> WorkFolder:
        """The window's folder, of a plan's folder."""
        return WorkFolder(posixpath.dirname(self.uri.rstrip("/")), self.digests, depth=max(self.depth - 1, 0))

    @property
    def name(self) -> str:
        """This folder's own name."""
        return posixpath.basename(self.uri.rstrip("/"))

    def children(self) -> tuple[str, ...]:
        """The names of the folders directly below this one, sorted; empty if this folder does not exist."""
        return self._entries("directory")

    def names(self) -> tuple[str, ...]:
        """The names of the files directly in this folder, sorted; empty if it does not exist."""
        return self._entries("file")

    def _entries(self, kind: str) -> tuple[str, ...]:
        filesystem, path = self._place
        try:
            entries = filesystem.ls(path, detail=True)
        except FileNotFoundError:
            return ()
        finally:
            # an object store's client would answer by this listing from now on, also whether a file exists
            filesystem.invalidate_cache(path)
        return tuple(sorted(posixpath.basename(each["name"]) for each in entries if each["type"] == kind))

    def path(self, name: str) -> str:
        """The full path of one file, in the file system's own form. Raises PlanError for a name that leads out of the
        folder: many are read from files in which others may write."""
        return posixpath.join(self._place[1], self._inside(name))

    def _inside(self, name: str) -> str:
        if name.startswith("/") or "\0" in name or ".." in name.split("/"):
            raise PlanError(
                f"{self.uri}: expected the name of a file in this folder, found {name[:80]!r}: {self._what_next}"
            )
        return name

    def _below_root(self, name: str = "") -> tuple[Path, tuple[str, ...]]:
        """Of a folder of this machine: the work folder, and the names from there to a file, or to this folder."""
        folder, name = Path(self._place[1]), self._inside(name)
        depth = max(len(folder.parts) - self.depth, 1)
        return Path(*folder.parts[:depth]), (*folder.parts[depth:], *filter(None, name.split("/")))

    def exists(self, name: str) -> bool:
        """Whether the complete file exists."""
        return bool(self._place[0].exists(self.path(name)))

    def has(self, name: str) -> bool:
        """Whether the window has the file: by the digests that the target has of its files, if these are known."""
        return self.exists(name) if self.digests is None else f"{self.below}{name}" in self.digests

    def read(self, name: str, most: int | None = None) -> bytes:
        """The content of the file. Raises PlanError if it does not exist, has more than ``most`` bytes (None: than
        any file of a window), or is not the one whose digest is known."""
        data = self._whole(name, _MOST_BYTES if most is None else most)
        if self.digests is not None and (expected := self.digests.get(f"{self.below}{name}")) != digest_of(data):
            known = "none of this name" if expected is None else f"SHA-256 {expected}"
            # not the digest that was found: it would tell of another file of this machine, to which the name is a link
            raise PlanError(
                f"{self.uri}/{name}: expected {known}, as the target has recorded of the window's files, found "
                "another: the file was changed or is damaged; find out who can write to the work folder, "
                f"remove {self.window.uri if self.below else self.uri}, and run again: an open window's log is read "
                "once more, and a finished window needs no files"
            )
        return data

    def _whole(self, name: str, most: int) -> bytes:
        if not self.is_local:
            with self._present(name):
                # one request, and no more than a byte too many
                data = bytes(self._place[0].cat_file(self.path(name), end=most + 1))
            self._require_size(name, len(data), most)
            return data
        with self.open(name) as file:
            self._require_size(name, os.fstat(file.fileno()).st_size, most)
            # it may grow meanwhile
            return file.read(most)

    def _require_size(self, name: str, size: int, most: int) -> None:
        if size > most:
            found = "more" if size == most + 1 else f"{size:,}"
            raise PlanError(
                f"{self.uri}/{name}: expected a file of a window, of at most {most:,} bytes, found {found}: "
                f"{self._what_next}"
            )

    def open(self, name: str) -> IO[bytes]:
        """The file, for reading piece by piece. Raises PlanError if it does not exist."""
        with self._present(name):
            if self.is_local:
                return open_regular(self.path(name))
            return self._place[0].open(self.path(name), "rb")  # type: ignore[no-any-return]

    @property
    def _what_next(self) -> str:
        return (
            "another program has put it there; find out who can write to the work folder, remove the folder "
            f"{self.uri}, and run the window again"
        )

    def fetch(self, name: str, path: Path) -> None:
        """Copy the file to this machine, piece by piece. Raises PlanError if it does not exist."""
        with self._present(name):
            self._place[0].get_file(self.path(name), str(path))

    def size(self, name: str) -> int:
        """The file's length in bytes. Raises PlanError if it does not exist."""
        if self.is_local:
            with self.open(name) as file:
                return os.fstat(file.fileno()).st_size
        with self._present(name):
            return int(self._place[0].size(self.path(name)))

    @contextlib.contextmanager
    def _present(self, name: str) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError:
            raise PlanError(
                f"{self.uri}/{name}: this file of the window is missing; remove the folder {self.uri} and run "
                "the window again: it writes the same files"
            ) from None
        except NotRegularFileError as exc:
            raise PlanError(f"{self.uri}/{name}: {exc.strerror}: {self._what_next}") from exc

    def write_once(self, name: str, data: bytes) -> dict[str, str]:
        """Write the whole file. Raises PlanError if it exists with other bytes: a window's files never change. Returns
        its digest by its name in the window's folder."""
        if self.exists(name):
            if WorkFolder(self.uri).read(name) != data:
                raise PlanError(
                    f"{self.uri}/{name}: exists with other content, and a window's files are never rewritten; remove "
                    f"the folder {self.uri} and run the window again"
                )
            return {f"{self.below}{name}": digest_of(data)}
        return self.replace(name, data)

    def replace(self, name: str, data: bytes) -> dict[str, str]:
        """Write the whole file, also in place of another one: of those that decide nothing about the plan. Returns its
        digest by its name in the window's folder."""
        with self.create(name) as file:
            file.write(data)
        return {f"{self.below}{name}": digest_of(data)}

    @contextlib.contextmanager
    def create(self, name: str) -> Iterator[IO[bytes]]:
        """Write a file that appears when the ``with`` block ends without an error, and not at all otherwise."""
        filesystem, path = self._place[0], self.path(name)
        if not self.is_local:
            filesystem.makedirs(posixpath.dirname(path), exist_ok=True)
            # an object store's file object uploads its data when it is closed, even after an error
            with tempfile.NamedTemporaryFile(prefix="binlane-") as local:
                yield local
                local.flush()
                filesystem.put_file(local.name, path)
            return
        root, (*folders, last) = self._below_root(name)
        temporary = f"{last}.{uuid.uuid4().hex[:8]}.part"
        folder_mode, mode = (_OPEN_FOLDER, _OPEN_FILE) if self.others_read else (PRIVATE_FOLDER, PRIVATE_FILE)
        with entered(root, folders, makes=True, mode=folder_mode) as folder:
            try:
                with _new_file(temporary, folder, mode) as file:
                    yield file
                    file.flush()
                    os.fsync(file.fileno())
                os.replace(temporary, last, src_dir_fd=folder, dst_dir_fd=folder)
            finally:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(temporary, dir_fd=folder)
            sync(folder)

    def digest(self, name: str) -> str:
        """BLAKE3 of the file, in hex, read piece by piece."""
        with self.open(name) as file:
            return hashlib.file_digest(file, blake3).hexdigest()  # type: ignore[arg-type]

    def remove_file(self, name: str) -> None:
        """Remove the file, if it exists."""
        with contextlib.suppress(FileNotFoundError):
            if not self.is_local:
                self._place[0].rm_file(self.path(name))
                return
            root, (*folders, last) = self._below_root(name)
            with entered(root, folders) as folder:
                os.unlink(last, dir_fd=folder)

    def remove(self) -> None:
        """Remove the folder with everything in it, if it exists. Raises WorkError if another account's files keep it
        there, and PlanError for a link in front of it."""
        try:
            if self.is_local and self.depth:
                remove_tree(*self._below_root())
            else:
                self._place[0].rm(self._place[1], recursive=True)
        except FileNotFoundError:
            pass
        except OSError as exc:
            raise WorkError(f"{self.uri}: cannot be removed: {exc}; remove it by hand, then run again") from exc


def private_file(path: Path) -> IO[bytes]:
    """An empty file, open for writing, accessible to its owner only."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, PRIVATE_FILE)
    # an existing file has kept its mode
    os.fchmod(descriptor, PRIVATE_FILE)
    return os.fdopen(descriptor, "wb")


def _new_file(name: str, folder: int, mode: int) -> IO[bytes]:
    """The same with this mode, in an open folder, where no file has this name. ``folder``: its descriptor."""
    descriptor = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE_FILE, dir_fd=folder)
    os.fchmod(descriptor, mode)
    return os.fdopen(descriptor, "wb")
