"""What many images, rows and pages take."""
