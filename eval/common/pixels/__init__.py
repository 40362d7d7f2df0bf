"""Pixels that protocols measure or show: masks, what differs between two pictures, cut-outs."""
