"""What a run keeps on disk: record files, the run folder, the answer cache."""
