"""Column types: how a logged value is read, spelled as SQL, compared and written. Nothing here knows a table.

``column_types`` has one row for each type code of a TABLE_MAP, ``sql_types`` one for each type that a catalogue names.
"""
