"""Messages, the words in CSVs, CSV files and run records. Imports nothing else of the suite."""
