"""What the five stages of the over-refusal benchmark share."""
