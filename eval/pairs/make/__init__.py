"""From an image to candidates: regions, masks, prompts, and what a model paints."""
