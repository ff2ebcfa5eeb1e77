"""What stands against what statements do beyond their texts: the order of rows, and the programs behind them."""
