"""The words of the grammars are those that the servers list."""

from __future__ import annotations

from binlane.model import Flavor
from binlane.sql.parse.keywords import KEYWORDS
from lab.servers import PrivateServer


def test_every_word_of_a_grammar_is_known(server: PrivateServer) -> None:
    since = "10.6" if server.flavor is Flavor.MARIADB else "8.0"
    [(version,)] = server.query("SELECT VERSION()")
    if [*map(int, version.split(".")[:2])] < [*map(int, since.split("."))]:
        return
    listed = {str(word).upper() for (word,) in server.query("SELECT word FROM information_schema.keywords")}
    assert {word for word in listed if word.replace("_", "").isalnum()} <= KEYWORDS
