"""`calmon run` on a real broker, from the topics to the sums: whole streams, kills, outages and losses."""
