"""Labels that come late and in bulk, by every way that there is."""
