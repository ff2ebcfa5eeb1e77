"""Column types: how their logged values are read, spelled as SQL, compared and written. Knows no tables.

``column_types`` has one row for each type code of a TABLE_MAP, ``sql_types`` one for each type of information_schema.
"""
