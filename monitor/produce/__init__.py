"""Event files into Kafka topics: `calmon produce`."""
