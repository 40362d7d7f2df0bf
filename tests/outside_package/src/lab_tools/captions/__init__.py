"""A protocol: does this caption describe the image, yes or no, and why?"""
