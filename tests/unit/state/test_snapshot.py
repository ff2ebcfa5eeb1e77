"""What a target's rows of one moment say about a channel."""

from binlane.model import FolderRecord, LogPosition
from binlane.state.channels import Channel, Watermark
from binlane.state.records.history import Snapshot
from binlane.state.records.journal import ChannelStatus
from binlane.state.windows import Window, WindowBounds


def test_a_window_that_was_opened_after_the_history_was_read_is_an_answer() -> None:
    start = LogPosition("binlog.1", 4)
    mark = Watermark(seqno=7, source=start, gtid_set="", source_time=1.0, fingerprint="")
    bounds = WindowBounds("shop", "w1", "source", 8, 9, start, "", 2.0, "", FolderRecord("/work/w1"))
    window = Window(bounds, 1, "open", None, None, None, None, None, mark, 7)
    status = ChannelStatus(Channel("shop", "uuid", "source", mark, 1), window, (), (), (), ())
    assert Snapshot(3.0, 1.0, None, None, status, history=()).open_window is None
