"""A definition's text is proved once where it is made: the proof takes longer than the statement."""

from __future__ import annotations

from unittest.mock import Mock

import pytest

from binlane.bootstrap import definition_copy
from binlane.bootstrap.definition_copy import Definition, make, make_again
from binlane.errors import PrecheckError


@pytest.mark.parametrize("door", [make, make_again])
def test_each_door_proves_a_text_once(door: Mock, monkeypatch: pytest.MonkeyPatch) -> None:
    proof, made = Mock(return_value=None), Mock()
    monkeypatch.setattr(definition_copy, "foreign_part", proof)
    monkeypatch.setattr(definition_copy, "_make", made)
    session, definition = Mock(), Definition("TABLE", "d", "t", b"CREATE TABLE `t` (`id` int)")

    door(session, definition)

    proof.assert_called_once_with(definition, session)
    made.assert_called_once_with(session, definition)


@pytest.mark.parametrize("door", [make, make_again])
def test_no_door_is_without_a_proof(door: Mock, monkeypatch: pytest.MonkeyPatch) -> None:
    made = Mock()
    monkeypatch.setattr(definition_copy, "foreign_part", Mock(return_value="a second statement"))
    monkeypatch.setattr(definition_copy, "_make", made)
    with pytest.raises(PrecheckError, match="expected its definition alone, found a second statement"):
        door(Mock(), Definition("TABLE", "d", "t", b"CREATE TABLE `t` (`id` int)"))
    made.assert_not_called()


def test_an_event_is_proved_as_it_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    event = Definition("EVENT", "d", "e", b"CREATE EVENT `e` ON SCHEDULE EVERY 1 DAY ENABLE DO SELECT 1")
    sent = Definition("EVENT", "d", "e", b"CREATE EVENT `e` ON SCHEDULE EVERY 1 DAY DISABLE DO SELECT 1")
    proof, made = Mock(return_value=None), Mock()
    monkeypatch.setattr(definition_copy, "foreign_part", proof)
    monkeypatch.setattr(definition_copy, "_make", made)
    monkeypatch.setattr(definition_copy, "_disabled", Mock(return_value=sent))
    session = Mock()

    make(session, event)

    assert [call.args[0] for call in proof.call_args_list] == [event, sent]
    made.assert_called_once_with(session, sent)
