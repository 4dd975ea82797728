"""Models, requests and answers: live, through batch services, or through files."""
