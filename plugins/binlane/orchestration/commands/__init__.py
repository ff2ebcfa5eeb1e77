"""What the command line's commands do, one module a command. Knows no Airflow."""
