"""The replication board: a page inside Airflow and the JSON API behind it (docs/board.md). Does not import Airflow."""
