"""Where events come from: a live server (``stream``) or binlog files (``archive``); ``segments`` writes them down."""
