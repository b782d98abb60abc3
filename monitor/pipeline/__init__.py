"""The pipeline: batches of records through the join into the sums, one checkpoint each."""
