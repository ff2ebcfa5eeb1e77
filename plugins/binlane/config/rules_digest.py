"""A digest of the rules by which a channel takes databases and tables, and of their names on the target."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict

from binlane.config.keys import ChannelConfig


def rules_digest(channel: ChannelConfig) -> str:
    """SHA-256 of `[filter]` and `[rename]`: what was verified under other rules says nothing of these. Keys that are
    not set do not count, so a key that a later binlane has changes nothing."""
    given = {name: value for name, value in asdict(channel.filter).items() if value}
    return hashlib.sha256(json.dumps([given, channel.rename], sort_keys=True).encode()).hexdigest()
