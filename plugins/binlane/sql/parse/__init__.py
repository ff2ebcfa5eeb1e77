"""Statement text -> tokens -> facts (`statements.analyze`). Knows nothing of channels, shards or servers."""
