"""One transaction: from events to parts, filtered, renamed, classified. No lanes, no blocks."""
