"""Image files: found in folders, checked whole, and made ready to send byte for byte."""
