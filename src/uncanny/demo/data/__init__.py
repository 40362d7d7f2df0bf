"""What the demo model knows: the bundled images with their truth, and the mistakes that it makes."""
