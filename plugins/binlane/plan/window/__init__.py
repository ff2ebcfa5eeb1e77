"""All segments of a window: scans folded into routes, summaries into the plan, lanes' blocks across segments."""
