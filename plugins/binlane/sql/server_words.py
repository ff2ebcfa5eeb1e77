"""Words of statements that not every server knows, with the words in which binlane names what they stand for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

OWN_OBJECTS: Final[Mapping[str, str]] = {
    "SEQUENCE": "sequence",
    "PACKAGE": "package",
    "TABLESPACE": "tablespace",
    "LIBRARY": "library",
    "RESOURCE": "resource group",
    "LOGFILE": "tablespace",
    "INSTANCE": "instance",
}
OBJECTS: Final = frozenset(
    {
        *("TABLE", "INDEX", "VIEW", "TRIGGER", "PROCEDURE", "FUNCTION", "EVENT", "DATABASE", "SCHEMA"),
        *("USER", "ROLE", "SERVER"),
        *OWN_OBJECTS,
    }
)
TYPES: Final[Mapping[str, str]] = {
    "JSON": "JSON column",
    "VECTOR": "VECTOR column",
    "UUID": "UUID column",
    "INET6": "INET6 column",
    "INET4": "INET4 column",
    "XMLTYPE": "XMLTYPE column",
}
CLAUSES: Final[Mapping[tuple[str, str], str]] = {
    ("SYSTEM", "VERSIONING"): "system versioning",
    ("PERIOD", "FOR"): "period",
    ("WITHOUT", "OVERLAPS"): "period",
    ("NOT", "ENFORCED"): "check that is not enforced",
}
ENGINES: Final = frozenset(
    {
        *("archive", "aria", "blackhole", "columnstore", "connect", "csv", "example", "federated", "heap", "innodb"),
        *("memory", "merge", "mrg_myisam", "mroonga", "myisam", "ndb", "ndbcluster", "oqgraph", "rocksdb", "s3"),
        *("sequence", "sphinx", "spider", "tokudb"),
    }
)
OPTIONS: Final[Mapping[str, str]] = {
    **dict.fromkeys(
        ("PAGE_CHECKSUM", "TRANSACTIONAL", "PAGE_COMPRESSED", "ENCRYPTED", "ENCRYPTION_KEY_ID", "SEQUENCE"),
        "option of MariaDB",
    ),
    **dict.fromkeys(
        ("ENCRYPTION", "SECONDARY_ENGINE", "ENGINE_ATTRIBUTE", "SECONDARY_ENGINE_ATTRIBUTE", "AUTOEXTEND_SIZE"),
        "option of MySQL",
    ),
}
ACCOUNT_OPTIONS: Final = frozenset({"FAILED_LOGIN_ATTEMPTS", "PASSWORD_LOCK_TIME", "ATTRIBUTE", "RETAIN"})
"""Clauses of CREATE USER and ALTER USER that only MySQL has."""
PRIVILEGES_OF_MARIADB: Final = frozenset(
    {
        *("BINLOG ADMIN", "BINLOG MONITOR", "BINLOG REPLAY", "CONNECTION ADMIN", "DELETE HISTORY", "FEDERATED ADMIN"),
        *("READ_ONLY ADMIN", "REPLICATION MASTER ADMIN", "REPLICATION SLAVE ADMIN", "REPLICA MONITOR", "SET USER"),
        *("SLAVE MONITOR", "SHOW CREATE ROUTINE"),
    }
)
"""Privileges of MariaDB in several words; MySQL's dynamic privileges are one word with underscores."""
