"""Was the source of each image recognised? Truth from a file or from folder names, and the scores."""
