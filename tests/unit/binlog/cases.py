"""Events as servers wrote them, and what they say. Bodies in hex are from MariaDB 10.11.19 and MySQL 9.7.4."""

from __future__ import annotations

import struct
import zlib
from dataclasses import replace
from typing import Final

import pytest
import zstandard

from binlane.binlog.events import (
    AnnotateRows,
    BinlogCheckpoint,
    Duplicates,
    Event,
    ExecuteLoadQuery,
    FileBlock,
    FileDeletion,
    Gtid,
    Heartbeat,
    Incident,
    Intvar,
    IntvarKind,
    MariadbGtid,
    MariadbGtidList,
    Opaque,
    PreviousGtids,
    Query,
    Rand,
    Rotate,
    RowsQuery,
    StartEncryption,
    Stop,
    TransactionPayload,
    UserVar,
    ValueType,
    XaName,
    XaPrepare,
    Xid,
)
from binlane.binlog.format_description import BARE_FORMAT, FormatDescription
from binlane.binlog.gtids import MariadbExtraFlag, MariadbGtidFlag
from binlane.binlog.payload import Compression
from binlane.binlog.wire import HEADER, MAGIC, ChecksumAlgorithm, EventType, build_event
from binlane.model import SessionContext

T = EventType
MARIADB: Final = replace(BARE_FORMAT, server_version="10.11.19-MariaDB-log")
MYSQL: Final = replace(BARE_FORMAT, server_version="9.7.4-2")


def wire(type_code: int, body: bytes, flags: int = 0) -> bytes:
    return build_event(type_code, body, timestamp=1_700_000_000, server_id=7, flags=flags)


def crc(event: bytes) -> bytes:
    """The event as it stands in a file with checksums."""
    header = HEADER.unpack_from(event)
    grown = HEADER.pack(*header[:3], header[3] + 4, *header[4:]) + event[HEADER.size :]
    return grown + zlib.crc32(grown).to_bytes(4, "little")


def format_event(log_format: FormatDescription, flags: int = 0) -> bytes:
    """FORMAT_DESCRIPTION that announces the algorithm of ``log_format``."""
    bare = log_format.without_checksum(server_id=7)
    header = HEADER.unpack_from(bare)
    body = bytearray(bare[HEADER.size : -4])
    body[-1] = log_format.checksum
    body[52:56] = struct.pack("<I", log_format.created)
    event = HEADER.pack(*header) + body
    return event[:17] + bytes((flags,)) + event[18:] + zlib.crc32(event).to_bytes(4, "little")


def log(*events: bytes, log_format: FormatDescription = MARIADB, checksums: bool = True, flags: int = 0) -> bytes:
    """A whole log of events that have no checksums yet."""
    algorithm = ChecksumAlgorithm.CRC32 if checksums else ChecksumAlgorithm.NONE
    head = MAGIC + format_event(replace(log_format, checksum=algorithm), flags)
    return head + b"".join(crc(event) if checksums else event for event in events)


def query(sql: bytes, *, database: bytes = b"a", status: bytes = b"", error: int = 0, flags: int = 0) -> bytes:
    body = struct.pack("<IIBHH", 6, 0, len(database), error, len(status)) + status + database + b"\0" + sql
    return wire(T.QUERY, body, flags)


def mariadb_gtid(seq_no: int, flags: int) -> bytes:
    return wire(T.MARIADB_GTID, struct.pack("<QIB", seq_no, 0, flags) + bytes(6))


def mysql_gtid(gno: int, microseconds: int = 1_700_000_000_123_456) -> bytes:
    body = b"\0" + UUID_BYTES + struct.pack("<qBqq", gno, 2, gno - 1, gno) + microseconds.to_bytes(7, "little")
    return wire(T.GTID, body)


def payload(*events: bytes, declared: int | None = None, compression: Compression = Compression.ZSTD) -> bytes:
    plain = b"".join(events)
    data = zstandard.compress(plain) if compression is Compression.ZSTD else plain
    size = len(plain) if declared is None else declared
    fields = b"".join(
        bytes((kind, 9, 254)) + value.to_bytes(8, "little")
        for kind, value in ((2, compression), (3, size), (1, len(data)))
    )
    return wire(T.TRANSACTION_PAYLOAD, fields + b"\0" + data)


UUID: Final = "c4f08971-e56c-11f1-b2c3-02fc00000001"
UUID_BYTES: Final = bytes.fromhex(UUID.replace("-", ""))
COMPRESSED_BODY: Final = bytes.fromhex(
    "06000000000000000100001d000000000001010f000400000000000603737464042d002d002d000704006100816b789c2b2d48492c49552851"
    "284e2d5128b355cfa619500700fc562b43"
)

MARIADB_SESSION: Final = SessionContext(
    database="a",
    sql_mode=1411383296,
    charset_client=45,
    collation_connection=45,
    collation_server=45,
    foreign_key_checks=True,
    unique_checks=True,
    auto_is_null=False,
    check_constraint_checks=True,
    if_exists=False,
    system_versioning_insert_history=False,
    explicit_defaults_for_timestamp=True,
    lc_time_names=4,
    thread_id=6,
)
MYSQL_SESSION: Final = SessionContext(
    database="a",
    sql_mode=1168113696,
    charset_client=255,
    collation_connection=255,
    collation_server=255,
    default_collation_for_utf8mb4=255,
    foreign_key_checks=True,
    unique_checks=True,
    auto_is_null=False,
    lc_time_names=4,
    thread_id=10,
)


def case(
    name: str,
    type_code: int,
    body: bytes | str,
    expected: Event,
    log_format: FormatDescription = MARIADB,
    flags: int = 0,
) -> object:
    data = bytes.fromhex(body) if isinstance(body, str) else body
    return pytest.param(wire(type_code, data, flags), expected, log_format, id=name)


CASES: Final = [
    case("xid", T.XID, b"\x2a" + bytes(7), Xid(42)),
    case("stop", T.STOP, b"", Stop()),
    case("rotate", T.ROTATE, struct.pack("<Q", 4) + b"binlog.000002", Rotate(4, "binlog.000002")),
    case("rotate-padded", T.ROTATE, struct.pack("<Q", 1 << 40) + b"b.2\0\0", Rotate(1 << 40, "b.2")),
    case("ignorable-unknown", 200, b"new", Opaque(200, b"new"), flags=0x80),
    case("table-map", T.TABLE_MAP, b"map", Opaque(T.TABLE_MAP, b"map")),
    case("annotate", T.ANNOTATE_ROWS, b"insert 1", AnnotateRows(b"insert 1")),
    case("rows-query", T.ROWS_QUERY, b"\x08insert 1", RowsQuery(b"insert 1")),
    case("checkpoint", T.BINLOG_CHECKPOINT, "0d00000062696e6c6f672e303030303031", BinlogCheckpoint("binlog.000001")),
    case("last-insert-id", T.INTVAR, "010900000000000000", Intvar(IntvarKind.LAST_INSERT_ID, 9)),
    case("insert-id", T.INTVAR, "020a00000000000000", Intvar(IntvarKind.INSERT_ID, 10)),
    case("rand", T.RAND, "4c208d21000000007052af3c00000000", Rand(562896972, 1018122864)),
    case("user-variable-null", T.USER_VAR, "010000007501", UserVar("u", None)),
    case(
        "user-variable-string-without-flags",
        T.USER_VAR,
        "010000007500002d000000060000006827656c6c6f",
        UserVar("u", b"h'ello", ValueType.STRING, 45),
    ),
    case(
        "user-variable-integer",
        T.USER_VAR,
        "010000006900020800000008000000fbffffffffffffff00",
        UserVar("i", (-5).to_bytes(8, "little", signed=True), ValueType.INT, 8),
    ),
    case(
        "user-variable-unsigned",
        T.USER_VAR,
        "010000006900020800000008000000ffffffffffffffff01",
        UserVar("i", b"\xff" * 8, ValueType.INT, 8, unsigned=True),
    ),
    case(
        "user-variable-with-a-type-name",
        T.USER_VAR,
        b"\1\0\0\0g\0\0\x3f\0\0\0\2\0\0\0\xab\xcd\2\5point",
        UserVar("g", b"\xab\xcd", ValueType.STRING, 63, type_name="point"),
    ),
    case(
        "mariadb-gtid",
        T.MARIADB_GTID,
        "03000000000000000000000029000000000000",
        MariadbGtid(3, 0, MariadbGtidFlag(0x29), extra_flags=MariadbExtraFlag(0)),
    ),
    case(
        "mariadb-gtid-of-a-group-commit",
        T.MARIADB_GTID,
        struct.pack("<QIBQ", 3, 1, 0x0E, 77),
        MariadbGtid(3, 1, MariadbGtidFlag(0x0E), commit_id=77),
    ),
    case(
        "mariadb-gtid-xa",
        T.MARIADB_GTID,
        "1a00000000000000000000004c07000000020167316201ff",
        MariadbGtid(
            26, 0, MariadbGtidFlag(0x4C), xa=XaName(7, b"g1", b"b"), extra_flags=MariadbExtraFlag.MULTI_ENGINE
        ),
    ),
    case(
        "mariadb-gtid-commit-alter",
        T.MARIADB_GTID,
        "04000000000000000500000029040300000000000000",
        MariadbGtid(4, 5, MariadbGtidFlag(0x29), extra_flags=MariadbExtraFlag.COMMIT_ALTER, start_seq_no=3),
    ),
    case(
        "mariadb-gtid-thread-id",
        T.MARIADB_GTID,
        struct.pack("<QIBBI", 4, 5, 0x04, 0x10, 99),
        MariadbGtid(4, 5, MariadbGtidFlag(0x04), extra_flags=MariadbExtraFlag.THREAD_ID, thread_id=99),
    ),
    case("gtid-list-empty", T.MARIADB_GTID_LIST, "000000000000", MariadbGtidList(())),
    case(
        "gtid-list",
        T.MARIADB_GTID_LIST,
        "03000000050000000dd200000100000000000000050000004d0000000400000000000000000000000dd200002800000000000000",
        MariadbGtidList(((5, 53773, 1), (5, 77, 4), (0, 53773, 40))),
    ),
    case("gtid-list-flags", T.MARIADB_GTID_LIST, "00000010", MariadbGtidList((), 1)),
    case("gtid-5.6", T.GTID, b"\1" + UUID_BYTES + struct.pack("<q", 9), Gtid(UUID, 9, 1), MYSQL),
    case(
        "gtid-5.7",
        T.ANONYMOUS_GTID,
        b"\0" + bytes(16) + struct.pack("<qBqq", 0, 2, 5, 6),
        Gtid("00000000-0000-0000-0000-000000000000", 0, 0, last_committed=5, sequence_number=6),
        MYSQL,
    ),
    case(
        "gtid-8",
        T.GTID,
        "01c4f08971e56c11f1b2c302fc0000000103000000000000000202000000000000000300000000000000fb2b64abc26006fc060150620100",
        Gtid(UUID, 3, 1, "", 2, 3, 1795239075654651, 1795239075654651, 262, 90704, 90704),
        MYSQL,
    ),
    case(
        "gtid-8-of-another-source",
        T.GTID,
        b"\1"
        + UUID_BYTES
        + struct.pack("<qBqq", 3, 2, 2, 3)
        + (1_700_000_000_000_001 | 1 << 55).to_bytes(7, "little")
        + (1_600_000_000_000_002).to_bytes(7, "little")
        + b"\xfa"
        + struct.pack("<II", 80_400 | 1 << 31, 80_030),
        Gtid(UUID, 3, 1, "", 2, 3, 1_700_000_000_000_001, 1_600_000_000_000_002, 250, 80_400, 80_030),
        MYSQL,
    ),
    case(
        "gtid-tagged",
        T.GTID_TAGGED,
        "0274000000021103c1032502e29503d822c503c9020d0304f10300000002040406087461676708800a880c7f94cc64abc26006107d041283"
        "120b",
        Gtid(UUID, 1, 0, "tagg", 32, 34, 1795239075695764, 1795239075695764, 287, 90704, 90704),
        MYSQL,
    ),
    case(
        "previous-gtids-tagged",
        T.PREVIOUS_GTIDS,
        "0102000000000001c4f08971e56c11f1b2c302fc0000000100010000000000000001000000000000002300000000000000"
        "c4f08971e56c11f1b2c302fc000000010874616767010000000000000001000000000000000200000000000000",
        PreviousGtids(((UUID, "", ((1, 34),)), (UUID, "tagg", ((1, 1),)))),
        MYSQL,
    ),
    case(
        "previous-gtids-untagged",
        T.PREVIOUS_GTIDS,
        struct.pack("<Q", 1) + UUID_BYTES + struct.pack("<QQQQQ", 2, 1, 6, 8, 9),
        PreviousGtids(((UUID, "", ((1, 5), (8, 8))),)),
        MYSQL,
    ),
    case(
        "xa-prepare",
        T.XA_PREPARE,
        "00070000000200000001000000673162",
        XaPrepare(one_phase=False, name=XaName(7, b"g1", b"b")),
    ),
    case("incident", T.INCIDENT, b"\1\0\4lost", Incident(1, "lost")),
    case("heartbeat", T.HEARTBEAT, b"binlog.000001", Heartbeat("binlog.000001", None)),
    case("heartbeat-v2", T.HEARTBEAT_V2, b"\1\3b.1\2\5\xfd\1\2\3\4\0", Heartbeat("b.1", 0x030201)),
    case("start-encryption", T.START_ENCRYPTION, b"\1" + b"\2\0\0\0" + b"n" * 12, StartEncryption(1, 2, b"n" * 12)),
    case("begin-load", T.BEGIN_LOAD_QUERY, b"\7\0\0\0a,b\n", FileBlock(7, memoryview(b"a,b\n"))),
    case("append-block", T.APPEND_BLOCK, b"\7\0\0\0", FileBlock(7, memoryview(b""))),
    case("delete-file", T.DELETE_FILE, b"\7\0\0\0", FileDeletion(7)),
    case(
        "execute-load",
        T.EXECUTE_LOAD_QUERY,
        struct.pack("<IIBHHIIIB", 6, 0, 1, 0, 0, 7, 10, 20, 2) + b"a\0LOAD DATA INFILE 'x' INTO",
        ExecuteLoadQuery(
            Query("a", b"LOAD DATA INFILE 'x' INTO", SessionContext(database="a", thread_id=6), 6),
            7,
            10,
            20,
            Duplicates.REPLACE,
        ),
    ),
    case(
        "payload",
        T.TRANSACTION_PAYLOAD,
        b"\2\1\0\3\3\xfc\x15\1\1\1\4\0data",
        TransactionPayload(Compression.ZSTD, 277, memoryview(b"data")),
        MYSQL,
    ),
    case(
        "mariadb-query",
        T.QUERY,
        "06000000000000000100001d0000000000010100002054000000000603737464042d002d002d000704006100584120454e442058"
        "2736373331272c58273632272c37",
        Query("a", b"XA END X'6731',X'62',7", MARIADB_SESSION, 6),
    ),
    case(
        "mariadb-query-compressed",
        T.QUERY_COMPRESSED,
        COMPRESSED_BODY,
        Query("a", b"update t set v='" + b"k" * 90 + b"'", replace(MARIADB_SESSION, sql_mode=262159), 6),
    ),
    case(
        "mariadb-query-of-a-two-phase-alter",
        T.QUERY,
        "060000000000000001000030000000000001010f000400000000000603737464042d002d002d000704008162000000000000008204030000"
        "00000000006100616c746572",
        Query(
            "a",
            b"alter",
            replace(MARIADB_SESSION, sql_mode=262159),
            6,
            ddl_xid=98,
            gtid_extra_flags=4,
            start_seq_no=3,
        ),
    ),
    case(
        "mysql-query-with-time-zone-and-microseconds",
        T.QUERY,
        "0a000000a33bad0501000030000000000000012000a04500000000060373746404ff00ff00ff0005062b30333a30300704000c0161000d40"
        "e20112ff006100424547494e",
        Query(
            "a",
            b"BEGIN",
            replace(MYSQL_SESSION, time_zone="+03:00"),
            10,
            95239075,
            updated_databases=("a",),
            microseconds=123456,
        ),
        MYSQL,
    ),
    case(
        "mysql-query-of-two-databases",
        T.QUERY,
        "0a000000000000000100002f000000000000012000a04500000000060373746404ff00ff00ff000704000c0262006100114800000000"
        "00000012ff00610044524f50",
        Query("a", b"DROP", MYSQL_SESSION, 10, updated_databases=("b", "a"), ddl_xid=72),
        MYSQL,
    ),
    case(
        "mysql-query-with-an-invoker",
        T.QUERY,
        "0a0000000000000001000038000000000000012000a04500000000060373746404ff00ff00ff000704000b0762696e6c616e6501250c"
        "01610011490000000000000012ff006100435245415445",
        Query(
            "a", b"CREATE", MYSQL_SESSION, 10, updated_databases=("a",), invoker=("binlane", "%"), ddl_xid=73
        ),
        MYSQL,
    ),
]  # fmt: skip
