"""`binlane inspect`: a log's events, rows and statements as text. Does not import Airflow."""
