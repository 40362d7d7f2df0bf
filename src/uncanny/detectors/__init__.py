"""Detectors: classifiers that tell generated images from real ones, and show where they look.

`loading` opens a folder of weights, `detector` asks it about batches of images, `attention` and `heat_maps`
show where it looks, `multitask` is the model that also segments artifacts, and `provider` lets runs ask a
detector in the place of a vision-language model.
"""
