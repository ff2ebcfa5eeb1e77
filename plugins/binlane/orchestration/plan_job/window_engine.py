"""Which engine runs the plan job of a window. Loads no engine: a DAG file is parsed in every task process."""

from __future__ import annotations

from binlane.choices import PlanEngine
from binlane.config import ChannelConfig
from binlane.lazy_dataclass import dataclass
from binlane.model import plural


@dataclass(frozen=True, slots=True)
class WindowEngine:
    """The engine of one window."""

    word: str
    reason: str = ""
    """Why "auto" means this one."""

    def __str__(self) -> str:
        return f"{self.word} ({self.reason})" if self.reason else self.word


def engine_for(channel: ChannelConfig, word: str, segments: int) -> WindowEngine:
    """The engine of a window of so many segments: "auto" becomes "local" or "spark"."""
    if word != PlanEngine.AUTO:
        return WindowEngine(word)
    least = channel.spark.min_segments
    is_small = segments < least
    compared = f"{plural(segments, 'segment')}, {'fewer than' if is_small else 'not fewer than'} {least}"
    return WindowEngine(PlanEngine.LOCAL if is_small else PlanEngine.SPARK, f"auto: {compared}")
