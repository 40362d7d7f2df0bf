"""Reward fine-tuning of a vision-language model that locates artifacts."""
