"""binlane as a provider of Airflow: its entry point ``apache_airflow_provider`` names ``provider_info``.

Airflow lists it under Admin, Providers, and knows the options of the section ``[binlane]`` of its configuration.
"""

from __future__ import annotations

from typing import Any


def provider_info() -> dict[str, Any]:
    """As Airflow's provider_info.schema.json asks for it."""
    return {
        "package-name": "binlane",
        "name": "binlane",
        "description": "Rolls MySQL and MariaDB binary logs forward onto another server: in parallel, in scheduled "
        "windows, exactly once.",
        "config": {
            "binlane": {
                "description": "Channels of binlane.",
                "options": {
                    "channels": {
                        "description": "Folder of the channel files, for the DAGs and for the board. Default: "
                        "``channels`` in the DAGs folder.",
                        "version_added": "0.1.0",
                        "type": "string",
                        "example": "/opt/airflow/dags/channels",
                        "default": None,
                    },
                },
            },
        },
    }
