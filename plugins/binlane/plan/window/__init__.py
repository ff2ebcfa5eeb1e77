"""All segments of a window together: scans folded into routes, summaries into the plan, lanes' blocks over segments."""
