"""What a benchmark is made of: which images and prompts are fit for it, which belong together, and who gets
which. Sources: X-AIGD, AnomReason, SalArt-VQA."""
