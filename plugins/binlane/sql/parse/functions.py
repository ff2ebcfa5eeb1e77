"""The built-in functions of the servers. A call of any other name may be a stored function.

MySQL and MariaDB: ``sql/item_create.cc``, the function rules of ``sql/sql_yacc.yy``; MariaDB's
``information_schema.SQL_FUNCTIONS``. Functions that MariaDB added in 11.x are left out: on an older server they may be
names of stored functions. A missing name costs a barrier, a wrong name would give a wrong order.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from binlane.model import Flavor

_COMMON: Final = """
abs acos adddate addtime aes_decrypt aes_encrypt ascii asin atan atan2 avg benchmark bin bit_and bit_count bit_length
bit_or bit_xor cast ceil ceiling char char_length character_length charset coalesce coercibility collation compress
concat concat_ws connection_id conv convert convert_tz cos cot count crc32 cume_dist curdate current_date current_role
current_time current_timestamp current_user curtime database date date_add date_format date_sub datediff day dayname
dayofmonth dayofweek dayofyear default degrees dense_rank elt exp export_set extract extractvalue field find_in_set
first_value floor format found_rows from_base64 from_days from_unixtime geometrycollection get_format get_lock
greatest group_concat hex hour if ifnull inet6_aton inet6_ntoa inet_aton inet_ntoa insert instr interval is_free_lock
is_ipv4 is_ipv4_compat is_ipv4_mapped is_ipv6 is_used_lock isnull json_array json_array_append json_array_insert
json_arrayagg json_contains json_contains_path json_depth json_extract json_insert json_keys json_length json_merge
json_merge_patch json_merge_preserve json_object json_objectagg json_overlaps json_quote json_remove json_replace
json_search json_set json_table json_type json_unquote json_valid json_value lag last_day last_insert_id lcase lead
least left length linestring ln load_file localtime localtimestamp locate log log10 log2 lower lpad ltrim make_set
makedate maketime master_pos_wait match max mbrcontains mbrdisjoint mbrequals mbrintersects mbroverlaps mbrtouches
mbrwithin md5 microsecond mid min minute mod month monthname multilinestring multipoint multipolygon name_const now
nth_value ntile nullif oct octet_length ord percent_rank period_add period_diff pi point polygon position pow power
quarter quote radians rand random_bytes rank regexp_instr regexp_replace regexp_substr release_all_locks release_lock
repeat replace reverse right round row row_count row_number rpad rtrim schema sec_to_time second session_user sha sha1
sha2 sign sin sleep soundex space sqrt st_area st_asbinary st_asgeojson st_astext st_aswkb st_aswkt st_buffer
st_centroid st_contains st_convexhull st_crosses st_difference st_dimension st_disjoint st_distance st_distance_sphere
st_endpoint st_envelope st_equals st_exteriorring st_geomcollfromtext st_geomcollfromwkb st_geometryn st_geometrytype
st_geomfromgeojson st_geomfromtext st_geomfromwkb st_interiorringn st_intersection st_intersects st_isclosed
st_isempty st_issimple st_length st_linefromtext st_numgeometries st_numinteriorrings st_numpoints st_overlaps
st_pointfromtext st_pointn st_polyfromtext st_srid st_startpoint st_symdifference st_touches st_union st_within st_x
st_y std stddev stddev_pop stddev_samp str_to_date strcmp subdate substr substring substring_index subtime sum sysdate
system_user tan time time_format time_to_sec timediff timestamp timestampadd timestampdiff to_base64 to_days
to_seconds trim truncate ucase uncompress uncompressed_length unhex unix_timestamp updatexml upper user utc_date
utc_time utc_timestamp uuid uuid_short values var_pop var_samp variance version week weekday weekofyear weight_string
year yearweek
"""
_MYSQL: Final = """
any_value bin_to_uuid format_bytes format_pico_time grouping gtid_subset gtid_subtract icu_version is_uuid json_pretty
json_schema_valid json_schema_validation_report json_storage_free json_storage_size mbrcoveredby mbrcovers
ps_current_thread_id ps_thread_id regexp_like roles_graphml source_pos_wait st_collect st_frechetdistance st_geohash
st_hausdorffdistance st_isvalid st_latfromgeohash st_latitude st_lineinterpolatepoint st_longfromgeohash st_longitude
st_makeenvelope st_pointatdistance st_pointfromgeohash st_simplify st_swapxy st_transform st_validate statement_digest
statement_digest_text uuid_to_bin validate_password_strength wait_for_executed_gtid_set
"""
_MARIADB: Final = """
add_months area asbinary astext aswkb aswkt binlog_gtid_pos centroid chr column_add column_check column_create
column_delete column_exists column_get column_json column_list concat_operator_oracle crc32c decode decode_histogram
decode_oracle des_decrypt des_encrypt dimension disjoint encode encrypt endpoint envelope exteriorring geometryn
geometrytype geomfromtext geomfromwkb glength interiorringn intersects isclosed isempty issimple json_compact
json_detailed json_equals json_exists json_loose json_normalize json_pretty json_query lastval lengthb lpad_oracle
ltrim_oracle master_gtid_wait median natural_sort_key nextval numgeometries numinteriorrings numpoints nvl nvl2
old_password password percentile_cont percentile_disc pointn replace_oracle rpad_oracle rtrim_oracle schemas setval
sformat srid st_boundary st_isring st_pointonsurface st_relate startpoint substr_oracle sys_guid to_char touches
trim_oracle x y
"""
_LATER_COMMON: Final = """
st_geomcollfromtxt st_geometrycollectionfromtext st_geometrycollectionfromwkb st_geometryfromtext st_geometryfromwkb
st_linefromwkb st_linestringfromtext st_linestringfromwkb st_mlinefromtext st_mlinefromwkb st_mpointfromtext
st_mpointfromwkb st_mpolyfromtext st_mpolyfromwkb st_multilinestringfromtext st_multilinestringfromwkb
st_multipointfromtext st_multipointfromwkb st_multipolygonfromtext st_multipolygonfromwkb st_numinteriorring
st_pointfromwkb st_polyfromwkb st_polygonfromtext st_polygonfromwkb
"""
_LATER_MYSQL: Final = """
distance etag from_vector json_duality_object st_lineinterpolatepoints string_to_vector to_vector vector_dim
vector_distance vector_to_string
"""
_LATER_MARIADB: Final = """
date_format_oracle format_bytes format_pico_time geomcollfromtext geomcollfromwkb geometrycollectionfromtext
geometrycollectionfromwkb geometryfromtext geometryfromwkb json_array_intersect json_key_value
json_object_filter_keys json_object_to_array json_schema_valid kdf linefromtext linefromwkb linestringfromtext
linestringfromwkb mlinefromtext mlinefromwkb mpointfromtext mpointfromwkb mpolyfromtext mpolyfromwkb
multilinestringfromtext multilinestringfromwkb multipointfromtext multipointfromwkb multipolygonfromtext
multipolygonfromwkb pointfromtext pointfromwkb polyfromtext polyfromwkb polygonfromtext polygonfromwkb st_collect
st_geohash st_isvalid st_latfromgeohash st_longfromgeohash st_pointfromgeohash st_simplify st_validate to_date
to_number trunc uuid_v4 uuid_v7 vec_distance vec_distance_cosine vec_distance_euclidean vec_fromtext vec_totext
"""
_ADJACENT_ONLY: Final = """
ADDDATE BIT_AND BIT_OR BIT_XOR CAST COUNT CURDATE CURTIME DATE_ADD DATE_SUB EXTRACT GROUP_CONCAT MAX MID MIN NOW
POSITION SESSION_USER STD STDDEV STDDEV_POP STDDEV_SAMP SUBDATE SUBSTR SUBSTRING SUM SYSDATE SYSTEM_USER TRIM VARIANCE
VAR_POP VAR_SAMP
"""
_BEFORE_PARENTHESIS: Final = """
ALL AND AS BETWEEN BIGINT BINARY BLOB BOTH BY CASE CHARACTER CHECK COLLATE CROSS DATETIME DEC DECIMAL DISTINCT
DISTINCTROW DIV DOUBLE ELSE ELSEIF EXCEPT EXISTS FLOAT FOR FROM HAVING HIGH_PRIORITY IGNORE IN INDEX INNER INT INT1 INT2
INT3 INT4 INT8 INTEGER INTERSECT IS JOIN KEY LATERAL LEADING LEFT LIKE LIMIT MEDIUMINT NOT NUMERIC ON OR OVER PARTITION
PRECISION PRIMARY REAL REGEXP RETURN RETURNING RIGHT RLIKE SELECT SET SMALLINT SQL_CALC_FOUND_ROWS STRAIGHT_JOIN THEN
TINYINT TRAILING UNION UNIQUE USING VARBINARY VARCHAR WHEN WHERE WHILE WITH XOR
"""

BUILTIN: Final[Mapping[Flavor, frozenset[str]]] = {
    Flavor.MYSQL: frozenset(f"{_COMMON} {_MYSQL}".upper().split()),
    Flavor.MARIADB: frozenset(f"{_COMMON} {_MARIADB}".upper().split()),
}
"""Names in upper case, by flavor."""
LATER: Final[Mapping[Flavor, frozenset[str]]] = {
    Flavor.MYSQL: frozenset(f"{_LATER_COMMON} {_LATER_MYSQL}".upper().split()),
    Flavor.MARIADB: frozenset(f"{_LATER_COMMON} {_LATER_MARIADB}".upper().split()),
}
"""Functions that only some series have, by flavor: the server's own where no stored function can be meant."""
OWN_SCHEMAS: Final = frozenset({"mariadb_schema", "oracle_schema", "maxdb_schema"})
"""Behind these names MariaDB looks for functions of its own (``mariadb_schema.uuid()``, seen on 10.11.18), whether or
not there is a database of that name."""
ADJACENT_ONLY: Final = frozenset(_ADJACENT_ONLY.split())
"""Built in only if the parenthesis follows without a blank (unless IGNORE_SPACE is set); else a stored function."""
BEFORE_PARENTHESIS: Final = frozenset(_BEFORE_PARENTHESIS.split())
"""Words before a parenthesis that are no calls; all but DATETIME are reserved."""
