"""The Kafka source against a real broker, and against what kafka-python does when something breaks."""
