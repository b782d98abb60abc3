"""Windows at past moments: what `calmon history` answers from the stored panes."""
