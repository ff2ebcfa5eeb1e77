"""The words of the grammars, and the functions, are those that the servers list."""

from __future__ import annotations

from binlane.model import Flavor
from binlane.sql.parse.functions import BUILTIN, LATER
from binlane.sql.parse.keywords import KEYWORDS
from lab.servers import PrivateServer

_OF_CLUSTERS = {"WSREP_LAST_SEEN_GTID", "WSREP_LAST_WRITTEN_GTID", "WSREP_SYNC_WAIT_UPTO_GTID"}
"""Functions that no column computes with."""


def test_every_word_of_a_grammar_is_known(server: PrivateServer) -> None:
    since = "10.6" if server.flavor is Flavor.MARIADB else "8.0"
    [(version,)] = server.query("SELECT VERSION()")
    if [*map(int, version.split(".")[:2])] < [*map(int, since.split("."))]:
        return
    listed = {str(word).upper() for (word,) in server.query("SELECT word FROM information_schema.keywords")}
    assert {word for word in listed if word.replace("_", "").isalnum()} <= KEYWORDS


def test_every_function_that_a_server_lists_is_known(server: PrivateServer) -> None:
    """A table that computes with an unknown one is refused."""
    lists = "SELECT 1 FROM information_schema.tables WHERE table_name = 'SQL_FUNCTIONS'"
    if server.flavor is not Flavor.MARIADB or not server.query(lists):
        return
    listed = {str(name).upper() for (name,) in server.query("SELECT function FROM information_schema.sql_functions")}
    assert listed - _OF_CLUSTERS <= BUILTIN[Flavor.MARIADB] | LATER[Flavor.MARIADB]
