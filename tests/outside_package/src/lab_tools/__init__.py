"""What a lab adds to uncanny: a model, an agent, a graph and a protocol."""
