"""The Airflow plugin for a checkout that is not installed: Airflow loads this file from ``core.plugins_folder``.

An installed binlane announces the same plugin by its entry point, and Airflow reports a plugin that it finds twice.
"""

from importlib.metadata import entry_points

if not entry_points(group="airflow.plugins", name="binlane"):
    # Airflow takes every plugin class that it finds in this module
    from binlane.airflow_plugin import BinlanePlugin  # noqa: F401
