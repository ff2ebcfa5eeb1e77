"""A window as a run: ``request`` (what it asks for), ``steps`` (task bodies); ``airflow``, ``commands`` call them."""
