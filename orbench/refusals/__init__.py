"""Is this response a refusal: the API's own signals, text cleaning, rules as data, one function."""
