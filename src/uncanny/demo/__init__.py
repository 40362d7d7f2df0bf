"""A model without weights, the pictures it knows, and a server that speaks for it.

- `sets`: the words for the bundled sets. `scenes`: their pictures and the truth about them.
- `data`: the images, and `data.mistakes`, what the model gets wrong on purpose.
  `views`: a picture as the model sees it, the two put together; made-up content for any other picture.
- `recognition`: which of uncanny's prompts a request asks with. `annotate`, `detect`, `mcq`, `realism`: the
  answers to each protocol's prompts. `model`: one request to its answer, and the provider `demo`.
- `server`: `uncanny fake-server`, the same model behind OpenAI's and Anthropic's APIs, with faults on demand.
"""
