"""What stands against the statements of a window: their texts, and the programs behind them."""
