"""Sources of events: a live server (``stream``) or binlog files (``archive``); ``segments`` writes their segments."""
