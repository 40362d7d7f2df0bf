"""What agents share: the state of an image, contexts that ask, boxes, batches, and agents of users."""
