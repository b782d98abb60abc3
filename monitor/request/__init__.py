"""Questions asked once, from event files or the state of a service: references and recommendations."""
