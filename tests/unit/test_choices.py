"""A word of a channel file and the class behind it: neither without the other."""

from __future__ import annotations

import json
import pickle

import pytest

from binlane import choices
from binlane.apply.rows.writers import ROW_WRITERS
from binlane.choices import Assigner, Consistency, PlanEngine, Word, Writer
from binlane.orchestration.plan_job.engines import PLAN_ENGINES
from binlane.plan.consistency import LEVELS
from binlane.shards.assigners import ASSIGNERS

CLASSES = [each for each in vars(choices).values() if isinstance(each, type) and issubclass(each, Word)]
WORDS = [word for each in CLASSES for word in each]


def test_the_tables_of_classes_have_the_words_of_the_channel_file() -> None:
    assert list(ASSIGNERS) == list(Assigner)
    assert [*ROW_WRITERS, Writer.AUTO] == list(Writer)
    assert list(LEVELS) == list(Consistency)
    assert [*PLAN_ENGINES, PlanEngine.AUTO] == list(PlanEngine)


@pytest.mark.parametrize("word", WORDS, ids=repr)
def test_a_word_is_its_text_wherever_it_is_written(word: Word) -> None:
    assert json.dumps({word: word}) == json.dumps({word.value: word.value})
    assert (f"{word}", repr(word), hash(word)) == (word.value, f"'{word.value}'", hash(word.value))
    assert pickle.loads(pickle.dumps(word)) is word
    assert word.meaning
