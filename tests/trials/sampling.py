"""Sweeps that take hours as a whole: ``make sweeps`` runs all of each, ``make trials`` a sample."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Final, TypeVar

_CaseT = TypeVar("_CaseT")

IS_WHOLE: Final = os.environ.get("BINLANE_SWEEP") == "all"


def sampled(cases: Sequence[_CaseT], sample: Sequence[_CaseT]) -> Sequence[_CaseT]:
    """All cases, or those of the sample, each of which must be one."""
    assert set(sample) <= set(cases)
    return cases if IS_WHOLE else sample
