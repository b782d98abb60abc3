"""Evidence in the running service: which panes are mature, what is carried of each version, and the journal of crossings."""
