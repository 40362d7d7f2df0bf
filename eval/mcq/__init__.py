"""The Q1–Q4 multiple-choice protocol: does a model understand a salient artifact? Source: SalArt-VQA."""
