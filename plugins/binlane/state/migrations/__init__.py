"""The version of the schema ``binlane`` on a target: checked by every command and task, brought up by steps."""
