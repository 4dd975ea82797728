"""What a stage is, the engine that runs one, and what the five scripts share."""
