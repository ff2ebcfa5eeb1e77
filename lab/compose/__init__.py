"""docker-compose.yml, started for real: images, the site, and what it survives."""
