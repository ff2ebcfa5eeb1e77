"""The version of the schema ``binlane`` on a target: checked by every command and task, upgraded by ordered steps."""
