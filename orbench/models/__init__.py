"""Models: where they are served, how they are asked, what they answer."""
