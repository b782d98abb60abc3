"""Labels that come late, in bulk: from files through one sieve to where the service gets its labels."""
