"""What to ask, and what was answered: live, through batch services, or through files."""
