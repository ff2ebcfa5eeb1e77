"""What both families compute, asked of both: each difference is one that a window between the families names.

Expressions over columns of the types that a function is for, each written into a column of the type of its result.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import Final

import pymysql
import pytest

from binlane.model import Flavor
from binlane.precheck.tables.converted_columns import ALIKE, kind_of
from binlane.sql.parse.lexer import Dialect, Token, lex
from binlane.sql.parse.other_answers import may_have_other_answer, other_answer, other_literal
from lab.servers import PrivateServer
from tests.conftest import requires_mysql

pytestmark = pytest.mark.trial
_MOST_OF_ONE: Final = 60
VALUES: Final[Mapping[str, tuple[str, ...]]] = {
    "i": ("i", "-i", "7", "0", "NULL"),
    "n": ("i", "price", "dbl", "-price", "2.5", "0.125", "NULL", "-i"),
    "s": ("s", "u", "'abc'", "''", "'ÄöÜ ß'", "'12'", "NULL"),
    "d": ("dt", "dtm", "CAST('2024-12-31 23:59:59' AS DATETIME)"),
    "t": ("tm", "CAST('-01:02:03.5' AS TIME(1))"),
    "j": ("j", """'{"b": 1, "aa": [1, 2.0, "x", null, true]}'""", """'[3,1,{"z":1}]'"""),
    "p": ("'$.b'", "'$.aa[0]'", "'$'", "'$.nn'"),
    "x": ("s", "i", "price", "dbl", "dt", "dtm", "tm", "NULL", "TRUE"),
    "g": (
        "ST_GeomFromText('POINT(1 2)')",
        "ST_GeomFromText('LINESTRING(0 0,1 1,2 5)')",
        "ST_GeomFromText('POLYGON((0 0,0 5,5 5,5 0,0 0))')",
        "ST_GeomFromText('POLYGON((0 0,5 5,0 5,5 0,0 0))')",
        "ST_GeomFromText('POLYGON((0 0,0 9,9 9,9 0,0 0),(1 1,1 2,2 2,2 1,1 1))')",
        "ST_GeomFromText('MULTIPOINT(1 2,3 4)')",
        "ST_GeomFromText('GEOMETRYCOLLECTION(POINT(1 1),LINESTRING(0 0,1 1))')",
    ),
    "f": ("'%Y-%m-%d %H:%i:%s'", "'%W %M %e %j %U %u %V %v %X %x'", "'%f %p %r %T'"),
    "r": ("'a+'", "'[[:alpha:]]+'", "'^.b'"),
    "e": ("DAY", "MONTH", "HOUR", "MICROSECOND", "WEEK", "QUARTER"),
}
"""Arguments by the letter that stands for them in ``FORMS``."""
FORMS: Final[Mapping[str, str]] = {
    "number": """
ABS(n);ACOS(n);ASIN(n);ATAN(n);ATAN2(n,n);CEILING(n);COS(n);COT(n);DEGREES(n);EXP(n);FLOOR(n);GREATEST(n,n);LEAST(n,n)
IF(i,n,n);IFNULL(n,n);NULLIF(n,n);COALESCE(n,n);LN(n);LOG(n);LOG(2,n);LOG10(n);LOG2(n);MOD(n,n);POW(n,n);RADIANS(n)
ROUND(n);ROUND(n,1);ROUND(n,-1);SIGN(n);SIN(n);SQRT(n);TAN(n);TRUNCATE(n,1);(n + n);(n - n);(n * n);(n / n);(n DIV n)
(n % n);CAST(n AS DECIMAL(10,2));CAST(n AS SIGNED);CASE WHEN i THEN n ELSE n END;AVG(n);SUM(n);(dbl / 3);(i / 7)
BIT_COUNT(X'4142');BIT_AND(X'41');(X'41' + 0);(1 | X'41');GREATEST(n,'12abc');LEAST(n,'2');UNIX_TIMESTAMP('1960-01-01')
UNIX_TIMESTAMP(NOW());ST_Y(g);ST_X(g);ST_Length(g);ST_Area(g);ST_Distance(g,g);TIME_TO_SEC(t);UNIX_TIMESTAMP(d)
""",
    "whole": """
ASCII(s);BIT_COUNT(i);BIT_LENGTH(s);CHAR_LENGTH(s);CRC32(s);DATEDIFF(d,d);DAYOFMONTH(d);DAYOFWEEK(d);DAYOFYEAR(d)
FIELD(s,s,s);FIND_IN_SET(s,s);HOUR(t);INSTR(s,s);INET_ATON('10.1.2.3');LENGTH(s);LOCATE(s,s);MICROSECOND(d);MINUTE(t)
MONTH(d);ORD(s);PERIOD_ADD(202401,i);PERIOD_DIFF(202401,202312);QUARTER(d);SECOND(t);STRCMP(s,s);TO_DAYS(d)
TO_SECONDS(d);TIMESTAMPDIFF(e,d,d);WEEK(d);WEEK(d,3);WEEKDAY(d);WEEKOFYEAR(d);YEAR(d);YEARWEEK(d);EXTRACT(e FROM d)
(i & i);(i | i);(i ^ i);(~i);(i << 3);(s = s);(s < s);(s LIKE 'a%');(s REGEXP r);REGEXP_INSTR(s,r);INTERVAL(n,n,n)
JSON_LENGTH(j);JSON_DEPTH(j);JSON_VALID(j);JSON_CONTAINS(j,'1',p);JSON_CONTAINS_PATH(j,'one',p);JSON_OVERLAPS(j,j)
ST_Contains(g,g);ST_Within(g,g);ST_Intersects(g,g);ST_Touches(g,g);ST_Overlaps(g,g);ST_Crosses(g,g);ST_Equals(g,g)
ST_Disjoint(g,g);MBRContains(g,g);MBRWithin(g,g);MBRTouches(g,g);MBREquals(g,g);ST_IsEmpty(g);ST_IsSimple(g);ST_IsClosed(g)
ST_Dimension(g);ST_NumPoints(g);ST_NumGeometries(g);ST_NumInteriorRings(g);JSON_VALID(x);EXTRACT(HOUR FROM t)
EXTRACT(HOUR FROM CAST('100:11:12' AS TIME));EXTRACT(DAY_HOUR FROM '100:11:12');YEAR('2024-12-31 23:30:00-02:00')
HOUR('2024-02-29T10:00:00+02:00');ST_SRID(g);BIT_XOR(i);CAST(s AS SIGNED)
""",
    "text": """
BIN(i);CONCAT(s,i);CONCAT_WS(s,i,d);CONV(i,10,16);CONV(s,16,10);DATE_FORMAT(d,f);TIME_FORMAT(t,f);DAYNAME(d);ELT(i,s,s)
EXPORT_SET(i,'Y','N');FORMAT(n,2);FORMAT(n,2,'de_DE');HEX(s);HEX(i);INET_NTOA(167837955);INSERT(s,1,2,s);LEFT(s,2)
LOWER(s);LPAD(s,5,'x');LTRIM(s);MAKE_SET(i,s,s);MONTHNAME(d);OCT(i);QUOTE(s);REPEAT(s,2);REPLACE(s,s,'q');REVERSE(s)
RIGHT(s,2);RPAD(s,5,'x');RTRIM(s);SOUNDEX(s);SUBSTRING(s,2);SUBSTRING_INDEX(s,'b',1);TO_BASE64(s);TRIM(s);UPPER(s)
MD5(s);SHA1(s);SHA2(s,256);GREATEST(s,s);LEAST(s,s);IF(i,s,s);COALESCE(s,s);REGEXP_REPLACE(s,r,'z');REGEXP_SUBSTR(s,r)
JSON_ARRAY(x,x);JSON_OBJECT(s,x);JSON_OBJECT('b',x,'a',x);JSON_ARRAY_APPEND(j,p,x);JSON_ARRAY_INSERT(j,'$.aa[0]',x)
JSON_INSERT(j,p,x);JSON_SET(j,p,x);JSON_REPLACE(j,p,x);JSON_REMOVE(j,p);JSON_EXTRACT(j,p);JSON_VALUE(j,p);JSON_KEYS(j)
JSON_TYPE(j);JSON_SEARCH(j,'one','x');JSON_QUOTE(s);JSON_MERGE_PRESERVE(j,j);JSON_MERGE_PATCH(j,j);JSON_PRETTY(j)
GROUP_CONCAT(s);CAST(d AS CHAR);CAST(i AS CHAR);CAST(s AS BINARY(5));HEX(CAST(s AS BINARY));ST_AsText(g)
LPAD(i,9,'');RPAD(s,9,'');JSON_TYPE(JSON_EXTRACT(j,p));JSON_TYPE(x);ST_GeometryType(g);HEX(ST_AsBinary(g));HEX(ST_PointN(g,1))
HEX(ST_StartPoint(g));HEX(ST_EndPoint(g));HEX(ST_ExteriorRing(g));HEX(ST_InteriorRingN(g,1));HEX(ST_GeometryN(g,1));HEX(g)
HEX(ST_GeomFromText('POINT(1 2)',4326));HEX(ST_GeomFromText('POINT(1 2)',0))
HEX(ST_GeomFromText('MULTIPOINT((1 2),(3 4))'))
HEX(ST_PointFromText('POINT(1 2)'));HEX(ST_GeomFromWKB(ST_AsBinary(g)));HEX(WEIGHT_STRING(s))
ST_AsGeoJSON(g);HEX(ST_AsBinary(g));HEX(ST_Buffer(g,1));HEX(ST_Centroid(g));HEX(ST_Envelope(g));HEX(ST_Union(g,g))
HEX(ST_Intersection(g,g));HEX(ST_ConvexHull(g));HEX(INET6_ATON('::1'));HEX(UNHEX('4142'));FROM_BASE64('QUJD')
EXTRACTVALUE('<a><b>x</b></a>','/a/b');UPDATEXML('<a>1</a>','/a','z');FROM_UNIXTIME(1700000000,f)
""",
    "moment": """
ADDDATE(d,i);ADDTIME(d,t);CONVERT_TZ(d,'+00:00','+02:00');DATE(d);FROM_DAYS(739000);FROM_UNIXTIME(1700000000)
FROM_UNIXTIME(1700000000.5);LAST_DAY(d);MAKEDATE(2024,i);STR_TO_DATE('2024-02-29','%Y-%m-%d');SUBDATE(d,i);SUBTIME(d,t)
FROM_UNIXTIME(4294967296);FROM_UNIXTIME(-1);FROM_DAYS(0);FROM_DAYS(5);CONVERT_TZ('2040-01-01','+00:00','+02:00')
('2024-02-29 10:00:00+02:00' + INTERVAL 1 DAY);CAST('2024-02-29 10:00:00.5-03:30' AS DATETIME)
TIMESTAMP(d);TIMESTAMP(d,t);TIMESTAMPADD(e,i,d);(d + INTERVAL i MONTH);(d - INTERVAL i SECOND);CAST(d AS DATETIME)
CAST(d AS DATE);CAST(d AS DATETIME(1));IF(i,d,d);COALESCE(d,d);GREATEST(d,d);LEAST(d,d);MAX(d)
""",
    "time": """
ADDTIME(t,t);SUBTIME(t,t);TIMEDIFF(t,t);TIMEDIFF(d,d);SEC_TO_TIME(n);MAKETIME(1,2,n);TIME(d);TIME(t);CAST(t AS TIME)
CAST(t AS TIME(1));COALESCE(t,t)
""",
}
"""Expressions by the column that takes them."""
_LETTER: Final = re.compile(r"'[^']*'|\b(?P<letter>[insdtjpxgfre])\b(?!\()")
"""A text is no place for an argument."""
_MADE: Final = (
    "CREATE TABLE answer (number DOUBLE, exact DECIMAL(40,15), whole BIGINT, text LONGTEXT, moment DATETIME(6), "
    "time TIME(6))",
    "CREATE TABLE given (i INT, price DECIMAL(12,3), dbl DOUBLE, s VARCHAR(50), u VARCHAR(50), dt DATE, "
    "dtm DATETIME(3), tm TIME(2), j JSON)",
    "INSERT INTO given VALUES (5, 12.340, 0.1, 'abc', 'Straße 12', '2024-02-29', '2024-02-29 13:45:56.789', "
    """'13:45:56.25', '{"b": 1, "aa": [1, 2.0, "x"]}')""",
)


def expressions() -> Iterator[tuple[str, str]]:
    """Each column with each expression that is written into it."""
    for column, forms in FORMS.items():
        for form in filter(None, re.split(r"[;\n]", forms)):
            letters = [place["letter"] for place in _LETTER.finditer(form) if place["letter"]]
            chosen = itertools.product(*(VALUES[letter] for letter in letters))
            for values in itertools.islice(chosen, _MOST_OF_ONE):
                parts = iter(values)
                text = _LETTER.sub(lambda place, parts=parts: next(parts) if place["letter"] else place[0], form)  # type: ignore[misc]
                yield column, text
                if column == "number":
                    yield "exact", text


def answers(server: PrivateServer) -> Mapping[tuple[str, str], object]:
    """What the server writes for each expression; None left out: those that it refuses."""
    found: dict[tuple[str, str], object] = {}
    server.query("CREATE DATABASE answers CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci")
    try:
        with closing(server.connect(autocommit=True, database="answers")) as connection, connection.cursor() as cursor:
            # as a lane writes them: each selects the other server's default
            mode = "TIME_ROUND_FRACTIONAL" if server.flavor is Flavor.MARIADB else ""
            cursor.execute(f"SET SESSION sql_mode = '{mode}', time_zone = '+00:00'")
            cursor.execute("SET NAMES utf8mb4 COLLATE utf8mb4_general_ci, timestamp = 1700000000")
            for statement in _MADE:
                cursor.execute(statement)
            for column, text in expressions():
                try:
                    cursor.execute(f"INSERT INTO answer ({column}) SELECT {text} FROM given")
                except pymysql.err.MySQLError:
                    continue
                cursor.execute(f"SELECT {column} FROM answer")
                [found[column, text]] = cursor.fetchall()
                cursor.execute("DELETE FROM answer")
    finally:
        server.query("DROP DATABASE answers")
    return found


TYPES: Final[Mapping[str, tuple[str, ...]]] = {
    "TINYINT": ("0", "-7", "127"),
    "INT": ("0", "-7", "2024", "20240229", "134556"),
    "BIGINT UNSIGNED": ("0", "18446744073709551615", "20240229134556"),
    "DECIMAL(12,3)": ("0.5", "-1.555", "2.5", "1234.999"),
    "FLOAT": ("0.1", "1e-10", "1e10", "-2.5", "3.14159"),
    "DOUBLE": ("0.1", "1e-10", "1e20", "-2.5", "1234567.891", "1e-5", "-0.0"),
    "VARCHAR(40)": (
        "'12abc'",
        "'2024-02-29 13:45:56.789'",
        "'1.2.3'",
        "'2024-02-29 10:00:00+02:00'",
        "' 7 '",
        "'1e3'",
        "''",
        "'a'",
        "'[1, 2]'",
    ),
    "TEXT": ("'abc'", "'12.7'", "'13:45:56.5'"),
    "VARBINARY(40)": ("'12'", "x'ff00'"),
    "DATE": ("'2024-02-29'", "'0000-00-00'"),
    "DATETIME(3)": ("'2024-02-29 13:45:56.789'", "'1999-12-31 23:59:59.999'"),
    "TIMESTAMP(3)": ("'2024-02-29 13:45:56.789'",),
    "TIME(3)": ("'13:45:56.789'", "'-01:02:03.5'"),
    "YEAR": ("1999", "2024", "0"),
    "ENUM('a','12','x')": ("'a'", "'12'"),
    "SET('a','b')": ("'a,b'", "''"),
    "BIT(12)": ("5", "4095"),
    "JSON": ("""'{"a":1}'""", "'12'"),
}
"""Values by the type of their column."""
SHORTER: Final = {"DATETIME(3)": "DATETIME", "TIMESTAMP(3)": "TIMESTAMP", "TIME(3)": "TIME"}


def conversions(server: PrivateServer) -> Mapping[tuple[str, str, str, str], object]:
    """What the server makes of each value by an ALTER TABLE to each other type, by sql_mode, if it takes it."""
    found: dict[tuple[str, str, str, str], object] = {}
    own = "TIME_ROUND_FRACTIONAL," if server.flavor is Flavor.MARIADB else ""
    server.query("CREATE DATABASE answers CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci")
    try:
        with closing(server.connect(autocommit=True, database="answers")) as connection, connection.cursor() as cursor:
            cursor.execute("SET SESSION time_zone = '+00:00'")
            for mode, before, after in itertools.product(("", "STRICT_TRANS_TABLES"), TYPES, TYPES):
                for value in TYPES[before] if before != after else ():
                    with contextlib.suppress(pymysql.err.MySQLError):
                        cursor.execute(f"SET SESSION sql_mode = '{own}'")
                        cursor.execute(f"CREATE TABLE one (c {before} NULL)")
                        cursor.execute(f"INSERT INTO one VALUES ({value})")
                        cursor.execute(f"SET SESSION sql_mode = '{own}{mode}'")
                        cursor.execute(f"ALTER TABLE one MODIFY c {SHORTER.get(after, after)} NULL")
                        cursor.execute("SELECT c FROM one")
                        [[taken]] = cursor.fetchall()
                        # documents are compared by value
                        found[mode, before, after, value] = json.loads(taken) if after == "JSON" and taken else taken
                    cursor.execute("DROP TABLE one")
    finally:
        server.query("DROP DATABASE answers")
    return found


@requires_mysql
def test_conversions_that_the_families_make_otherwise_are_named(
    mariadb_source: PrivateServer, mysql_source: PrivateServer
) -> None:
    ours, theirs = conversions(mariadb_source), conversions(mysql_source)
    both = ours.keys() & theirs.keys()
    assert len(both) > 1000
    differing = sorted(each for each in both if ours[each] != theirs[each])
    assert len(differing) > 30
    silent = []
    for each in differing:
        before, after = (kind_of(re.split(r"[ (]", part)[0]) for part in each[1:3])
        if before == after or (before, after) in ALIKE:
            silent.append((each, ours[each], theirs[each]))
    assert silent == []


@requires_mysql
def test_what_the_families_answer_otherwise_is_named(
    mariadb_source: PrivateServer, mysql_source: PrivateServer
) -> None:
    ours, theirs = answers(mariadb_source), answers(mysql_source)
    both = ours.keys() & theirs.keys()
    assert len(both) > 2000
    differing = sorted(each for each in both if ours[each] != theirs[each])
    named, silent = set[str](), []
    for column, text in differing:
        tokens, places = list[Token](), list[tuple[int, int]]()
        lex(text, dialect := Dialect(Flavor.MYSQL), tokens, places)
        what = other_answer(tokens) or other_literal(text, dialect, tokens, places)
        if what is None:
            silent.append((column, text, ours[column, text], theirs[column, text]))
        else:
            assert may_have_other_answer(text.encode()), text
            named.add(what)
    assert silent == []
    assert len(named) > 20
