"""What Airflow sees: DAGs, tasks, notes, errors as retry or no retry. The only place that imports airflow."""
