"""A window as a run: ``request`` (what it asks for), ``steps`` (task bodies), ``dag_factory`` (what knows Airflow)."""
