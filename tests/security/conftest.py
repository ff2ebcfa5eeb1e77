"""What the attacks share with the tests of whole windows."""

from tests.integration.window.conftest import channel, channel_of, clean_servers  # noqa: F401
