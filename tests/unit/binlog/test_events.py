"""Every event type: what it says, and what happens to it when it is cut or damaged."""

from __future__ import annotations

import contextlib
import struct
from dataclasses import replace

import pytest

from binlane.binlog.events import (
    PARSERS,
    Event,
    FormatDescription,
    Opaque,
    PreviousGtids,
    Query,
    Rotate,
    XaName,
    parse_body,
    parse_event,
)
from binlane.binlog.fields import Fields
from binlane.binlog.format_description import BARE_FORMAT, has_checksum_fields, split_version
from binlane.binlog.wire import (
    BufferOffset,
    ChecksumAlgorithm,
    EventHeader,
    EventType,
    RawEvent,
    check_crc,
    computed_crc,
)
from binlane.errors import BinlogError, ChecksumError, TruncatedEventError, UnknownEventError, UnsupportedEventError
from binlane.model import Flavor
from tests.unit.binlog.cases import CASES, MARIADB, MYSQL, UUID, UUID_BYTES, T, crc, format_event, query, wire

each_case = pytest.mark.parametrize(("data", "expected", "log_format"), CASES)


@each_case
def test_an_event_says_what_the_server_meant(data: bytes, expected: Event, log_format: FormatDescription) -> None:
    header, event = parse_event(memoryview(data), 0, log_format)

    assert event == expected
    assert header.event_size == len(data)


@each_case
def test_a_checksum_changes_nothing_but_the_size(data: bytes, expected: Event, log_format: FormatDescription) -> None:
    with_checksum = replace(log_format, checksum=ChecksumAlgorithm.CRC32)

    assert parse_event(memoryview(crc(data)), 0, with_checksum)[1] == expected


@each_case
def test_every_cut_is_reported_as_truncated(data: bytes, expected: Event, log_format: FormatDescription) -> None:
    for end in range(len(data)):
        with pytest.raises(TruncatedEventError, match=r"^log:0: "):
            parse_event(memoryview(data[:end]), 0, log_format, "log")


@each_case
def test_a_corrupt_byte_raises_nothing_but_binlog_errors(
    data: bytes, expected: Event, log_format: FormatDescription
) -> None:
    for at in range(len(data)):
        for value in (0, 1, 2, 5, 15, 0x20, 0x7F, 0x80, 0xC0, 0xFB, 0xFC, 0xFE, 0xFF):
            corrupt = data[:at] + bytes([value]) + data[at + 1 :]
            with contextlib.suppress(BinlogError):
                parse_event(memoryview(corrupt), 0, log_format)


@each_case
def test_a_body_that_ends_early_raises_nothing_but_binlog_errors(
    data: bytes, expected: Event, log_format: FormatDescription
) -> None:
    body = memoryview(data)[19:]
    for end in range(len(body)):
        header = EventHeader(0, data[4], 7, 19 + end, 0, 0x80)
        with contextlib.suppress(BinlogError):
            parse_body(RawEvent(BufferOffset(0), header, body[:end]), log_format)


def test_every_parser_has_a_case() -> None:
    covered = {param.values[0][4] for param in CASES}  # type: ignore[attr-defined]

    same_parser = {EventType.PERCONA_START_ENCRYPTION, EventType.FORMAT_DESCRIPTION}
    assert set(PARSERS) - covered == same_parser


def test_an_unknown_type_without_the_ignorable_flag_is_refused() -> None:
    with pytest.raises(UnknownEventError, match="cannot skip event type 200"):
        parse_event(memoryview(wire(200, b"new")), 0)


@pytest.mark.parametrize("size", [0, 1, 18])
def test_a_size_below_a_header_is_refused(size: int) -> None:
    data = bytearray(wire(T.XID, bytes(8)))
    struct.pack_into("<I", data, 9, size)

    with pytest.raises(BinlogError, match=f"event_size {size} is smaller than a header"):
        parse_event(memoryview(data), 0)


def test_a_size_without_room_for_the_checksum_is_refused() -> None:
    with pytest.raises(BinlogError, match="no room for a checksum"):
        parse_event(memoryview(wire(T.STOP, b"")), 0, replace(MYSQL, checksum=ChecksumAlgorithm.CRC32))


def test_a_rotate_names_a_file_as_servers_can_name_it() -> None:
    """Errors quote the name."""
    longest = b"a" * 505 + b".000099"
    _, event = parse_event(memoryview(wire(T.ROTATE, bytes(8) + longest + bytes(100))), 0)
    assert event == Rotate(0, longest.decode())
    with pytest.raises(BinlogError, match=r"^log:0: ROTATE: the name of a file has 513 bytes, expected at most 512$"):
        parse_event(memoryview(wire(T.ROTATE, bytes(8) + b"a" + longest)), 0, name="log")


def test_messages_say_file_offset_and_type() -> None:
    data = b"12345" + wire(T.XID, b"short")

    with pytest.raises(BinlogError, match=r"^binlog\.000007:5: XID: "):
        parse_event(memoryview(data), 5, MARIADB, "binlog.000007")


# --- FORMAT_DESCRIPTION


@pytest.mark.parametrize(
    ("version", "flavor", "numbers", "has_checksums"),
    [
        ("5.5.27-log", Flavor.MYSQL, (5, 5, 27), False),
        ("5.6.0-m4", Flavor.MYSQL, (5, 6, 0), False),
        ("5.6.1-m5", Flavor.MYSQL, (5, 6, 1), True),
        ("9.7.4-2", Flavor.MYSQL, (9, 7, 4), True),
        ("5.2.14-MariaDB", Flavor.MARIADB, (5, 2, 14), False),
        ("5.3.0-MariaDB", Flavor.MARIADB, (5, 3, 0), True),
        ("5.5.40-MariaDB-log", Flavor.MARIADB, (5, 5, 40), True),
        ("10.11.19-MariaDB-0+deb12u1-log", Flavor.MARIADB, (10, 11, 19), True),
        ("nonsense", Flavor.MYSQL, (0, 0, 0), False),
    ],
)
def test_versions_tell_the_flavor_and_whether_checksums_exist(
    version: str, flavor: Flavor, numbers: tuple[int, int, int], has_checksums: bool
) -> None:
    assert FormatDescription(version).flavor is flavor
    assert split_version(version) == numbers
    assert has_checksum_fields(version) is has_checksums


@pytest.mark.parametrize("version", ["9.7.4-2", "10.11.19-MariaDB-log"])
@pytest.mark.parametrize("algorithm", [ChecksumAlgorithm.NONE, ChecksumAlgorithm.CRC32])
def test_a_format_carries_its_own_checksum_whatever_the_algorithm(version: str, algorithm: ChecksumAlgorithm) -> None:
    described = replace(BARE_FORMAT, server_version=version, checksum=algorithm)
    data = memoryview(format_event(described))

    assert parse_event(data, 0)[1] == described
    check_crc(data, "log", 0)


def test_the_in_use_flag_does_not_count_in_the_checksum() -> None:
    closed, in_use = format_event(MARIADB), format_event(MARIADB, flags=1)

    assert computed_crc(memoryview(in_use)) == computed_crc(memoryview(closed))
    check_crc(memoryview(in_use), "log", 0)


def test_the_in_use_bit_of_another_event_does_count() -> None:
    event = bytearray(crc(wire(T.XID, bytes(8))))
    event[17] |= 1

    with pytest.raises(ChecksumError, match=r"^log:0: XID: stored CRC32 is"):
        check_crc(memoryview(event), "log", 0)


def test_an_old_format_has_neither_algorithm_nor_checksum() -> None:
    old = replace(BARE_FORMAT, server_version="5.5.27-log", post_header_lengths=b"\x38\x0d")
    event = old.without_checksum()

    assert len(event) == 19 + 57 + 2
    assert parse_event(memoryview(event), 0)[1] == old


def test_a_format_without_checksum_announces_no_start() -> None:
    source = FormatDescription("10.11.19-MariaDB", b"\x38\x0d", ChecksumAlgorithm.CRC32, created=1_700_000_000)

    told = parse_event(memoryview(source.without_checksum()), 0)[1]

    assert told == FormatDescription("10.11.19-MariaDB", b"\x38\x0d", ChecksumAlgorithm.NONE, created=0)


@pytest.mark.parametrize(
    "version", ["5.1.1-a_drop5p3-log", "5.1.5-a_drop5p20", "5.1.4-a_drop6", "5.2.2-a_drop6p13-alpha"]
)
def test_pre_releases_with_permuted_types_are_refused(version: str) -> None:
    data = replace(BARE_FORMAT, server_version=version).without_checksum()

    with pytest.raises(UnsupportedEventError, match=r"^bytes:0: FORMAT_DESCRIPTION: .*event types of its own"):
        parse_event(memoryview(data), 0)


def test_another_binlog_version_is_refused() -> None:
    data = bytearray(BARE_FORMAT.without_checksum())
    data[19] = 3

    with pytest.raises(UnsupportedEventError, match="binlog version 3, expected 4"):
        parse_event(memoryview(data), 0)


@pytest.mark.parametrize("length", [0, 18, 20, 27])
def test_a_header_length_other_than_19_is_refused(length: int) -> None:
    """No server writes one; limits of sizes are looked for behind 19 bytes."""
    data = bytearray(BARE_FORMAT.without_checksum())
    data[19 + 56] = length

    with pytest.raises(BinlogError, match=f"header length {length}, expected 19"):
        parse_event(memoryview(data), 0)


def test_a_format_that_ends_before_its_algorithm_is_refused() -> None:
    head = BARE_FORMAT.without_checksum()[: 19 + 57]

    with pytest.raises(BinlogError, match="ends before the checksum algorithm"):
        parse_event(memoryview(wire(T.FORMAT_DESCRIPTION, head[19:] + bytes(4))), 0)


# --- bodies that contradict themselves


TAGGED = bytes.fromhex("1103c1032502e29503d822c503c9020d0304f10300000002")


def tagged(fields: bytes, *, version: int = 1, last_needed: int = 0) -> bytes:
    body = bytes((version << 1, (len(fields) + 3) << 1, last_needed << 1)) + fields
    return wire(T.GTID_TAGGED, body)


def previous_gtids(*ranges: tuple[int, int]) -> bytes:
    """First, and the number behind the last."""
    pairs = b"".join(struct.pack("<QQ", *each) for each in ranges)
    return wire(T.PREVIOUS_GTIDS, struct.pack("<Q", 1) + UUID_BYTES + struct.pack("<Q", len(ranges)) + pairs)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (tagged(b"\2" + TAGGED + b"\4\4", version=2), "serialization format 2, expected 1"),
        (wire(T.GTID_TAGGED, tagged(b"\2" + TAGGED + b"\4\4")[19:] + b"\0"), "declares 30 bytes, the body has 31"),
        (tagged(b"\2" + TAGGED + b"\4\4\x28\0", last_needed=20), "field 20 is not known and must not be ignored"),
        (tagged(b"\2" + TAGGED), "UUID or number is missing"),
        (tagged(b"\4\4"), "UUID or number is missing"),
        (wire(T.MARIADB_GTID, struct.pack("<QIB", 3, 1, 0x02) + bytes(6)), "a field of 8 bytes, 6 are left"),
        (wire(T.MARIADB_GTID, struct.pack("<QIBIBB", 3, 1, 0x40, 1, 64, 64) + bytes(70)), "64 bytes, 6 are left"),
        (wire(T.MARIADB_GTID, struct.pack("<QIBB", 3, 1, 0x01, 0x04) + bytes(5)), "a field of 8 bytes, 5 are left"),
        (wire(T.PREVIOUS_GTIDS, bytes(7) + b"\2"), "GTID set encoding 2, expected 0 or 1"),
        (wire(T.QUERY, struct.pack("<IIBHH", 1, 0, 1, 0, 0) + b"axBEGIN"), "no NUL behind the database"),
        (query(b"DROP", status=b"\x0c\1abc"), "expected a NUL before the body's end"),
        (
            wire(T.EXECUTE_LOAD_QUERY, struct.pack("<IIBHHIIIB", 6, 0, 1, 0, 0, 7, 3, 2, 0) + b"a\0LOAD"),
            r"file name at 3\.\.2 of a statement of 4 bytes",
        ),
        (
            wire(T.EXECUTE_LOAD_QUERY, struct.pack("<IIBHHIIIB", 6, 0, 1, 0, 0, 7, 3, 5, 0) + b"a\0LOAD"),
            r"file name at 3\.\.5 of a statement of 4 bytes",
        ),
        (wire(T.TRANSACTION_PAYLOAD, b"\xff"), "255 does not begin a length-encoded integer"),
        (query(b"DROP", database=b"other\0app"), r"'other\\x00app' is no name of a database"),
        (query(b"DROP", database=b"app "), "'app ' is no name of a database"),
        (query(b"DROP", database=b"a" * 65), "a name of 65 characters, 64 at most"),
        (query(b"DROP", status=b"\x0c\1" + b"a" * 65 + b"\0"), "a name of 65 characters, 64 at most"),
        (tagged(b"\2" + TAGGED + b"\4\2"), "number -1 of a transaction"),
        (wire(T.GTID, b"\0" + UUID_BYTES + struct.pack("<q", -5)), "number -5 of a transaction"),
        (tagged(b"\2" + TAGGED + b"\4\4\6\4x'"), 'tag "x\'", expected at most 32'),
        (tagged(b"\2" + TAGGED + b"\4\4\x0c\xff" + b"\xff" * 8), "a commit at 18446744073709551615 microseconds"),
        (previous_gtids((1, 5), (5, 9)), "interval 5-8 of a GTID set behind 4"),
        (previous_gtids((7, 9), (1, 3)), "interval 1-2 of a GTID set behind 8"),
        (previous_gtids((0, 9)), "interval 0-8 of a GTID set"),
        (wire(T.PREVIOUS_GTIDS, b"\2" + bytes(7) + 2 * previous_gtids((1, 5))[27:]), "are in the GTID set twice"),
        (previous_gtids((5, 5)), "interval 5-4 of a GTID set"),
        (previous_gtids((1, 1 << 63 | 1)), "interval 1-9223372036854775808 of a GTID set"),
        (wire(T.XA_PREPARE, struct.pack("<BIII", 0, 1, 65, 0) + b"g" * 65), "an XID of 65 and 0 bytes, 64 each"),
        (wire(T.MARIADB_GTID, struct.pack("<QIBIBB", 3, 1, 0x40, 1, 1, 65) + bytes(66)), "an XID of 1 and 65 bytes"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_body_that_contradicts_itself_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(BinlogError, match=message):
        parse_event(memoryview(data), 0)


def test_an_unknown_field_of_a_tagged_gtid_may_be_ignored_if_it_says_so() -> None:
    gtid = parse_event(memoryview(tagged(b"\2" + TAGGED + b"\4\4\x28\0", last_needed=2)), 0)[1]

    assert str(gtid) == f"{UUID}:1"


@pytest.mark.parametrize(
    ("data", "value"),
    [("00", 0), ("fe", 127), ("0102", 128), ("83120b", 90704), ("ff" * 9, 2**64 - 1), ("ff" + "00" * 7 + "80", 2**63)],
)
def test_a_varint_has_as_many_further_bytes_as_low_one_bits(data: str, value: int) -> None:
    fields = Fields(memoryview(bytes.fromhex(data)))

    assert fields.varint() == value
    assert fields.left == 0


@pytest.mark.parametrize(("data", "value"), [("00", 0), ("02", -1), ("04", 1), ("fe", -64), ("ff" * 9, -(2**63))])
def test_a_signed_varint_has_its_sign_in_the_lowest_bit(data: str, value: int) -> None:
    assert Fields(memoryview(bytes.fromhex(data))).signed_varint() == value


# --- QUERY


def parsed(data: bytes, log_format: FormatDescription = MYSQL) -> Query:
    event = parse_event(memoryview(data), 0, log_format)[1]
    assert isinstance(event, Query)
    return event


@pytest.mark.parametrize("count", [17, 254, 255])
def test_more_databases_than_are_listed_are_told_apart_from_none(count: int) -> None:
    event = parsed(query(b"DROP", status=bytes((12, count, 13, 1, 0, 0))))

    assert event.updated_databases is None
    assert event.too_many_databases
    assert event.microseconds == 1


def test_sixteen_databases_are_listed() -> None:
    names = tuple(f"d{number}" for number in range(16))
    event = parsed(query(b"DROP", status=b"\x0c\x10" + b"".join(name.encode() + b"\0" for name in names)))

    assert event.updated_databases == names
    assert not event.too_many_databases


def test_an_unknown_status_variable_ends_their_reading_and_is_remembered() -> None:
    event = parsed(query(b"SELECT 1", status=b"\x07\4\0" + b"\x63\1\2\3" + b"\x08\x21\0"))

    assert event.unknown_status == 0x63
    assert event.context.lc_time_names == 4
    assert event.context.collation_database is None
    assert event.sql == b"SELECT 1"


@pytest.mark.parametrize(
    ("bits", "field", "value"),
    [
        (1 << 14, "auto_is_null", True),
        (0, "auto_is_null", False),
        (1 << 15, "check_constraint_checks", False),
        (0, "check_constraint_checks", True),
        (1 << 24, "explicit_defaults_for_timestamp", True),
        (1 << 26, "foreign_key_checks", False),
        (0, "foreign_key_checks", True),
        (1 << 27, "unique_checks", False),
        (0, "unique_checks", True),
        (1 << 28, "if_exists", True),
        (1 << 30, "system_versioning_insert_history", True),
    ],
)
def test_a_flag_bit_sets_its_variable(bits: int, field: str, value: bool) -> None:
    event = parsed(query(b"SELECT 1", status=struct.pack("<BI", 0, bits)), MARIADB)

    assert getattr(event.context, field) is value


@pytest.mark.parametrize(
    ("version", "logged"),
    [
        ("10.5.1-MariaDB", set()),
        ("10.5.2-MariaDB", {"if_exists"}),
        ("10.6.8-MariaDB", {"if_exists"}),
        ("10.6.9-MariaDB", {"if_exists", "explicit_defaults_for_timestamp"}),
        ("10.10.0-MariaDB", {"if_exists", "explicit_defaults_for_timestamp"}),
        ("10.11.0-MariaDB", {"if_exists", "explicit_defaults_for_timestamp", "system_versioning_insert_history"}),
        ("8.4.0", set()),
    ],
)
def test_a_flag_bit_that_a_version_does_not_log_says_nothing(version: str, logged: set[str]) -> None:
    bits = struct.pack("<BI", 0, 1 << 24 | 1 << 28 | 1 << 30)
    context = parsed(query(b"SELECT 1", status=bits), replace(BARE_FORMAT, server_version=version)).context

    fields = {"if_exists", "explicit_defaults_for_timestamp", "system_versioning_insert_history"}
    assert {field for field in fields if getattr(context, field) is not None} == logged


def test_mariadb_writes_session_collations_ahead_of_lower_codes() -> None:
    status = b"\x83\2\x2d\0\xe0\0\x21\0\xc0\0" + b"\x04\x2d\0\xe0\0\x08\0"
    context = parsed(query(b"SELECT 1", status=status), MARIADB).context

    assert context.character_set_collations == ((45, 224), (33, 192))
    assert context.collation_connection == 224


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (b"\x03\x0a\0\3\0", {"auto_increment_increment": 10, "auto_increment_offset": 3}),
        (b"\x06\3std\x08\x21\0", {"collation_database": 33}),
        (b"\x02\3std\0\x08\x21\0", {"collation_database": 33}),
        (b"\x0a\1\2\3\4\x08\x21\0", {"collation_database": 33}),
        (b"\x10\1\x13\1\x14\0", {
            "explicit_defaults_for_timestamp": True,
            "sql_require_primary_key": True,
            "default_table_encryption": False,
        }),
    ],
)  # fmt: skip
def test_a_status_variable_reaches_the_session(status: bytes, expected: dict[str, object]) -> None:
    context = parsed(query(b"SELECT 1", status=status)).context

    assert {field: getattr(context, field) for field in expected} == expected


def test_one_code_is_of_percona_server_before_it_is_mysqls() -> None:
    status = b"\x15\1\x08\x21\0"
    contexts = [
        parsed(query(b"SELECT 1", status=status), replace(MYSQL, server_version=version)).context
        for version in ("9.7.0", "8.0.45-36")
    ]
    assert [context.cascade_triggers for context in contexts] == [True, None]
    assert [context.collation_database for context in contexts] == [33, 33]


def test_table_map_for_update_is_kept() -> None:
    assert parsed(query(b"UPDATE", status=b"\x09" + struct.pack("<Q", 6))).table_map_for_update == 6


@pytest.mark.parametrize(("code", "log_format"), [(13, MYSQL), (128, MARIADB)])
def test_the_session_has_the_time_with_microseconds(code: int, log_format: FormatDescription) -> None:
    data = query(b"SELECT 1", status=bytes((code,)) + (123_456).to_bytes(3, "little"))
    header, event = parse_event(memoryview(data), 0, log_format)

    assert isinstance(event, Query)
    assert event.session(header).timestamp == 1_700_000_000.123456


@pytest.mark.parametrize(("database", "flags", "expected"), [(b"a", 0, "a"), (b"", 0, None), (b"new", 0x8, None)])
def test_the_session_enters_a_database_only_if_the_statement_needs_it(
    database: bytes, flags: int, expected: str | None
) -> None:
    header, event = parse_event(memoryview(query(b"CREATE DATABASE new", database=database, flags=flags)), 0)

    assert isinstance(event, Query)
    assert event.session(header).database == expected


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        (b"ALTER DATABASE CHARACTER SET latin1", "shop"),
        (b"alter schema collate = utf8mb4_bin", "shop"),
        (b"ALTER DATABASE READ ONLY = 1", "shop"),
        (b"ALTER DATABASE encryption = 'Y'", "shop"),
        (b"ALTER DATABASE shop CHARACTER SET latin1", None),
        (b"ALTER DATABASE `read` COLLATE latin1_bin", None),
        (b"DROP DATABASE shop", None),
    ],
)
def test_the_database_that_an_alter_does_not_name_is_the_session_s(sql: bytes, expected: str | None) -> None:
    header, event = parse_event(memoryview(query(sql, database=b"shop", flags=0x8)), 0)

    assert isinstance(event, Query)
    assert event.session(header).database == expected


def test_the_error_of_a_statement_is_kept() -> None:
    event = parsed(query(b"INSERT", error=1062))

    assert event.error_code == 1062
    assert event.context.error_code == 1062


def test_a_statement_keeps_bytes_that_are_no_text() -> None:
    assert parsed(query(b"INSERT '\xff\xfe'")).sql == b"INSERT '\xff\xfe'"


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        (b"XA COMMIT X'6731',X'62',7", XaName(7, b"g1", b"b")),
        (b"XA ROLLBACK X'6732',X'',1", XaName(1, b"g2", b"")),
        (b"XA COMMIT 'g1'", None),
    ],
)
def test_the_name_of_an_xa_statement_is_read(sql: bytes, expected: XaName | None) -> None:
    assert XaName.of_statement(sql) == expected
    assert expected is None or str(expected).encode() in sql


def test_a_gtid_set_prints_as_the_server_prints_it() -> None:
    sets = PreviousGtids((("u1", "", ((1, 5), (8, 8))), ("u1", "tag", ((3, 4),))))

    assert str(sets) == "u1:1-5:8,u1:tag:3-4"


def test_a_type_of_another_module_is_opaque() -> None:
    assert parse_event(memoryview(wire(T.WRITE_ROWS_V2, b"rows")), 0)[1] == Opaque(T.WRITE_ROWS_V2, b"rows")
