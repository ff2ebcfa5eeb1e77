"""Binary logs as values. Bytes go in, frozen values come out; nothing here opens a file, a socket or a clock.

``wire`` holds the numbers of the format and the framing of one event, ``events`` a class per event type, ``reader``
walks a log, ``payload`` opens compressed events, and ``transactions`` groups events into what commits together.
"""
