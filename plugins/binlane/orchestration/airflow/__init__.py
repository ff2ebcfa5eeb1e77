"""Airflow: DAGs, tasks, notes, and errors turned into retry or no retry. The only package that imports airflow."""
