"""Binary logs as frozen values. No module here opens a file or socket, or reads a clock.

``wire`` has the constants of the format and the framing of one event, ``events`` a class per event type, ``reader``
reads a log, ``payload`` decompresses events, and ``transactions`` groups events into transactions.
"""
