"""Commands that copy tables: bootstrap, its ways in and its progress, recopy. Does not import Airflow."""
