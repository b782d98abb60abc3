"""Questions asked once, from event files or the state of a stopped service: references and recommendations."""
