"""What goes out: the exposition and the HTTP server that writes it."""
