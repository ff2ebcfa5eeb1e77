"""A window as a run: ``request`` (what it asks for), ``steps`` (task bodies), called by ``airflow`` and ``commands``."""
