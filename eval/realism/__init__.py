"""Which edited images would fool a viewer: the two-order check (UGDA) of SAGI, run and scored."""
