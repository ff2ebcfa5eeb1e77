"""The first half of the step ``extract``: the window's part of the source's log becomes segments."""
