"""What all training runs share: folder, log, checkpoints, machine, model card, page."""
