"""The event contract: what a record may say, and how its bytes become typed records or a refusal."""
