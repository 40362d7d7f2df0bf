"""Trust: what people confirm on a sample of images, said of all of them."""
