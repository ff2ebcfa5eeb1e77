"""The run of a window: ``request`` (its options), ``steps`` (the task bodies, called by ``airflow`` and
``commands``)."""
