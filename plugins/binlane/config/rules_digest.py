"""A digest of the keys that say what a verification compares, and with what."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict

from binlane.config.keys import ChannelConfig


def rules_digest(channel: ChannelConfig) -> str:
    """SHA-256 of `[filter]`, `[rename]`, `[collations]` and `apply.allow_unseen`: what was verified under other rules
    says nothing of these. Keys that are not set do not count, so a key that a later binlane has changes nothing."""
    given = {name: value for name, value in asdict(channel.filter).items() if value}
    others = {"collations": sorted(channel.collations), "apply.allow_unseen": sorted(channel.apply.allow_unseen)}
    rules = [given, channel.rename, *([name, value] for name, value in others.items() if value)]
    return hashlib.sha256(json.dumps(rules, sort_keys=True).encode()).hexdigest()
