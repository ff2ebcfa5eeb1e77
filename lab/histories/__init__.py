"""Hostile histories: what sessions do to a source, brought to a target by binlane; the server's replica judges."""
