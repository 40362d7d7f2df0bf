"""Records of located artifacts, the formats they are read from, and their regions as pixels."""
