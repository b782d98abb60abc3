"""Windows: running sums over the newest panes, exact because integers have inverses; pure."""
