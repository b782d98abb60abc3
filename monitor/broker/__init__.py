"""Looking at a Kafka cluster beside the stream: opening clients, topics, and whether they can be watched."""
