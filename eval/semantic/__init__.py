"""SemAP and SemF1: how well predicted anomalies match the true ones, by meaning."""
