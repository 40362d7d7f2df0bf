"""What commands share: options, the files they read and write, the terminal, a run's display and end."""
