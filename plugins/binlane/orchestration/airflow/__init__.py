"""The Airflow side: DAGs, tasks, notes, and errors turned into retry or no retry. The only place that imports
airflow."""
