"""What the trials share with the tests of whole windows."""

from tests.integration.window.conftest import channel, channel_of, clean_servers, undone  # noqa: F401
